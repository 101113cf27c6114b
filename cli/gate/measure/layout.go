package measure

import (
	"context"
	"debug/elf"
	"fmt"
	"math"
	"sort"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"mirador/mir/client"
	"mirador/sir"
)

// Line is the size of a cache line, within which the address of code matters.
const Line = 64

// Moved reports whether a unit of both programs has the same instructions, also in the functions
// that it calls, at addresses that differ within a cache line, and calls these functions equally often.
// Then a difference of times comes from the addresses, not from the source.
func (r *Runner) Moved(ctx context.Context, base, head Side, region string) (bool, error) {
	var texts [2]string
	var entries [2]uint64
	for i, s := range []Side{base, head} {
		t, err := r.start(ctx, s)
		if err == nil {
			texts[i], entries[i], err = r.code(ctx, t, region)
		}
		if left := r.finish(t); err == nil {
			err = left
		}
		if err != nil {
			return false, err
		}
	}
	if texts[0] != texts[1] || entries[0]%Line == entries[1]%Line {
		return false, nil
	}
	from, err := r.profile(ctx, base, region)
	if err != nil {
		return false, err
	}
	to, err := r.profile(ctx, head, region)
	return err == nil && sameCalls(from, to), err
}

// sameCalls reports whether a unit calls the same functions equally often in both programs. Equal code
// may still call them more often if it works on other data.
func sameCalls(from, to *profile) bool {
	const most = 0.01 // a call may be under way when the program is stopped
	for _, calls := range []map[string]float64{from.calls, to.calls} {
		for name := range calls {
			if a, b := from.calls[name], to.calls[name]; math.Abs(a-b) > most*max(a, b) {
				return false
			}
		}
	}
	return true
}

// code returns the instructions of a unit without addresses, and its address in the file.
func (r *Runner) code(ctx context.Context, t *subject, region string) (text string, entry uint64, err error) {
	d, u, err := dumpOf(ctx, r.Client, t, r.unit(region, t))
	if err != nil {
		return "", 0, err
	}
	defer d.file.Close()
	d.add(u)
	return d.text.String(), u.Entry, nil
}

// dumpOf returns the program of a unit, with its file open, and the unit.
func dumpOf(ctx context.Context, c *client.Client, t *subject, unit string) (*dump, sir.Region, error) {
	s, err := c.Structure(ctx, t.app)
	if err != nil {
		return nil, sir.Region{}, err
	}
	for _, p := range s.Programs {
		for _, u := range p.Regions {
			if u.ID == unit {
				f, err := elf.Open(t.path)
				return &dump{file: f, program: p, seen: map[uint64]bool{}}, u, err
			}
		}
	}
	return nil, sir.Region{}, fmt.Errorf("%s has no %s", t.name, unit)
}

// dump writes functions as text that does not depend on where they are.
type dump struct {
	file    *elf.File
	program sir.Program
	seen    map[uint64]bool
	text    strings.Builder
}

// mostDumped limits how many functions are compared.
const mostDumped = 200

func (d *dump) add(u sir.Region) {
	if d.seen[u.Entry] || len(d.seen) >= mostDumped {
		return
	}
	d.seen[u.Entry] = true
	for _, other := range d.one(u) {
		d.add(other)
	}
}

// one writes a function, and returns those that it calls.
func (d *dump) one(u sir.Region) (called []sir.Region) {
	bytes := d.bytes(u)
	fmt.Fprintf(&d.text, "%s %d:", u.Symbol, len(bytes))
	for at := 0; at < len(bytes); {
		i, err := x86asm.Decode(bytes[at:], 64)
		if err != nil || i.Len == 0 {
			fmt.Fprintf(&d.text, " %x", bytes[at])
			at++
			continue
		}
		code := append([]byte(nil), bytes[at:at+i.Len]...)
		for n := range i.PCRel {
			code[i.PCRelOff+n] = 0
		}
		at += i.Len
		fmt.Fprintf(&d.text, " %x", code)
		if target, ok := i.Args[0].(x86asm.Rel); ok {
			to := u.Entry + uint64(at) + uint64(int64(target))
			switch other, ok := d.at(to); {
			case !ok:
				d.text.WriteString("(elsewhere)") // such as a function of a library
			case other.Entry == u.Entry:
				fmt.Fprintf(&d.text, "(%d)", to-u.Entry)
			default:
				fmt.Fprintf(&d.text, "(%s+%d)", other.Symbol, to-other.Entry)
				called = append(called, other)
			}
		}
	}
	d.text.WriteByte('\n')
	return called
}

// at returns the function that contains an address: the first one, if several names stand for it.
func (d *dump) at(address uint64) (sir.Region, bool) {
	all := d.program.Regions // in the order of their addresses
	i := sort.Search(len(all), func(i int) bool { return all[i].Entry > address }) - 1
	for i > 0 && all[i-1].Entry == all[i].Entry {
		i--
	}
	if i < 0 || address >= all[i].Entry+all[i].Size {
		return sir.Region{}, false
	}
	return all[i], true
}

// bytes returns the code of a function.
func (d *dump) bytes(u sir.Region) []byte {
	for _, p := range d.file.Progs {
		if p.Type == elf.PT_LOAD && u.Entry >= p.Vaddr && u.Entry+u.Size <= p.Vaddr+p.Filesz && u.Size < 1<<20 {
			code := make([]byte, u.Size)
			if _, err := p.ReadAt(code, int64(u.Entry-p.Vaddr)); err == nil {
				return code
			}
		}
	}
	return nil
}
