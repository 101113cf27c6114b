package cli

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// tool is a session of "mirador omis" that prints the replies to a tool's conditional requests. The
// requests are sent by other commands.
type tool struct {
	*served
	name string
	out  *gathered
}

// gathered contains the output of a program so far.
type gathered struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *gathered) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

func (g *gathered) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// listen starts a session, and returns when the session receives replies.
func (s *served) listen(t *testing.T, name string, more ...string) *tool {
	t.Helper()
	x := &tool{s, name, &gathered{}}
	cmd := exec.Command(miradorPath, append([]string{"omis", "--tool", name}, more...)...)
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	cmd.Stdout, cmd.Stderr = x.out, x.out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // its exit status does not matter
		if t.Failed() {
			t.Logf("%s received:\n%s", name, x.out)
		}
	})
	io.WriteString(in, "pa_interval_elapsed(10) : print([\"heard\"])\n")
	x.await(t, 1, "(?m)^0 OMIS_CSR_DEFINED.*$")
	x.ask(t, ": csr_enable([])")
	x.await(t, 1, `\["heard"\]`)
	x.ask(t, ": csr_delete([])")
	return x
}

// ask sends a request that must succeed, and returns the reply.
func (x *tool) ask(t *testing.T, request string) string {
	t.Helper()
	out, errs, status := x.mirador(t, "", "omis", "--tool", x.name, request)
	if status != 0 {
		t.Fatalf("%s: exit status %d: %s%s", request, status, out, errs)
	}
	return out
}

// define defines a conditional request and returns its token.
func (x *tool) define(t *testing.T, request string) string {
	t.Helper()
	reply := x.ask(t, request)
	m := regexp.MustCompile(`^0 OMIS_CSR_DEFINED\(2\) \[\] (c_\d+)\n`).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("%s is answered by %s", request, reply)
	}
	return m[1]
}

// await waits until a pattern has matched the tool's output n times, and returns the groups of each
// match.
func (x *tool) await(t *testing.T, n int, pattern string) [][]string {
	t.Helper()
	expr := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if found := expr.FindAllStringSubmatch(x.out.String(), -1); len(found) >= n {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("%s occurs less than %d times in\n%s", pattern, n, x.out)
		}
	}
}

// addressOf returns the address of a function in a process.
func addressOf(t *testing.T, pid int, file, symbol string) uint64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([0-9a-f]+)-\S+ \S+ 00000000 .* (/\S*` + regexp.QuoteMeta(file) + `)$`).FindSubmatch(maps)
	if m == nil {
		t.Fatalf("%s is not in\n%s", file, maps)
	}
	base, _ := strconv.ParseUint(string(m[1]), 16, 64)
	f, err := elf.Open(string(m[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dynamic, _ := f.DynamicSymbols()
	static, _ := f.Symbols()
	for _, s := range append(dynamic, static...) {
		if s.Name == symbol && s.Value != 0 {
			return base + s.Value
		}
	}
	t.Fatalf("%s has no %s", file, symbol)
	return 0
}
