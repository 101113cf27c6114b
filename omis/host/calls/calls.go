package calls

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mirador/omis"
	"mirador/omis/host/prototype"
)

//go:embed table.txt
var text string

// Call is a system call.
type Call struct {
	Number int
	*prototype.Func
}

// table finds calls by name and by number.
type table struct {
	byName   map[string]*Call
	byNumber map[uint64]*Call
}

// parsed returns the table, which it parses on first use.
var parsed = sync.OnceValue(func() table {
	t, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("table.txt: %v", err)) // a test parses the same table
	}
	return t
})

func parse(text string) (table, error) {
	t := table{make(map[string]*Call), make(map[uint64]*Call)}
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		number, proto, _ := strings.Cut(l, " ")
		nr, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", line, err)
		}
		f, err := prototype.ParseOne(proto)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", line, err)
		}
		if t.byName[f.Name] != nil || t.byNumber[nr] != nil {
			return t, fmt.Errorf("line %d: %s or %d occurs twice", line, f.Name, nr)
		}
		c := &Call{int(nr), f}
		t.byName[f.Name], t.byNumber[nr] = c, c
	}
	return t, nil
}

// ByName finds a call.
func ByName(name string) (c *Call, ok bool) {
	c, ok = parsed().byName[name]
	return c, ok
}

// Names returns the names of all calls of the table, sorted.
func Names() []string { return slices.Sorted(maps.Keys(parsed().byName)) }

// ByNumber finds the call with a number. A call that is not in the table gets a name made
// of its number, and six integer parameters.
func ByNumber(nr uint64) *Call {
	if c, ok := parsed().byNumber[nr]; ok {
		return c
	}
	return &Call{int(nr), prototype.Untyped("syscall_" + strconv.FormatUint(nr, 10))}
}

// Args holds the registers with the parameters: rdi, rsi, rdx, r10, r8, r9. They are the
// same at the end of a call as at its start, except for execve and rt_sigreturn.
type Args [6]uint64

func (a Args) decoded() []prototype.Arg {
	args := make([]prototype.Arg, len(a))
	for i, bits := range a {
		args[i].Bits = bits
	}
	return args
}

// Started decodes the parameters of a call that starts, one value each.
func (c *Call) Started(a Args, mem prototype.Memory) []omis.Value {
	return c.Func.Started(a.decoded(), mem)
}

// Ended decodes a call that ended with rax. It returns the result (-1 if the call
// failed), the error number (0 if it did not), the parameters, and the bytes of its messages if
// HasMessages.
func (c *Call) Ended(a Args, rax uint64, mem prototype.Memory) []omis.Value {
	result := c.Result.Value(prototype.Arg{Bits: rax})
	errno := Errno(rax)
	if errno != 0 {
		result = omis.Int(-1)
	}
	values := c.Func.Ended(a.decoded(), result, mem)
	values = slices.Insert(values, 1, omis.Int(int64(errno)))
	if HasMessages(c.Name) {
		values = append(values, omis.Int(messageBytes(a[1], int64(rax), mem)))
	}
	return values
}

// Errno returns the error number in rax, 0 if the call did not fail. Numbers above 511
// (such as ERESTARTSYS) mean that the kernel will restart the call, or let it fail with
// EINTR after a signal handler.
func Errno(rax uint64) int {
	const most = 4095
	if n := -int64(rax); n >= 1 && n <= most {
		return int(n)
	}
	return 0
}
