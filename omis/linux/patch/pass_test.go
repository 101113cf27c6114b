//go:build linux && amd64

package patch

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mirador/omis/code/x86/landing"
	"mirador/omis/node"
)

// still is a process with one stopped thread.
type still struct {
	surveyor *Surveyor
	pc       uint64
	held     []uint64 // addresses to which signal handlers return
	inCopy   bool     // the thread is in code of the monitor
	moved    uint64
}

func (s *still) Surveyor(uint64) (*Surveyor, error) { return s.surveyor, nil }

func (s *still) Vacancies(uint64, uint64, []Range) []uint64 { return []uint64{1 << 20} }

func (s *still) Call(_ uint64, args ...uint64) (int64, error) {
	if args[0] == 1<<20 && len(args) > 4 {
		return 1 << 20, nil // mmap
	}
	return 0, nil
}

func (s *still) CallOn(string, uint64, ...uint64) (int64, error) { return 0, nil }

func (s *still) Threads() ([]Thread, error) {
	t := Thread{TID: 1, PC: s.pc}
	if !s.inCopy {
		t.Move = func(pc uint64) error {
			s.moved = pc
			return nil
		}
	}
	return []Thread{t}, nil
}

func (s *still) Held(pick func(uint64) bool) (list []uint64, err error) {
	for _, addr := range s.held {
		if pick(addr) {
			list = append(list, addr)
		}
	}
	return list, nil
}

func (s *still) Redirect(to map[uint64]uint64) error {
	for i, addr := range s.held {
		s.held[i] = cmp.Or(to[addr], addr)
	}
	return nil
}

func (s *still) Parked(landing.Goroutines, func(uint64) bool) ([]uint64, error) { return nil, nil }

// TestPassEntry checks a thread that is after the first instruction when code for the beginning of
// the function is added or removed: the thread must not execute new code, but must execute removed
// code.
func TestPassEntry(t *testing.T) {
	surveyor, memory, labels := assembled(t, ".globl f\n.type f, @function\nf: .cfi_startproc; push %rbx; mov %rdi, %rbx; lea 1(%rbx), %rax; pop %rbx; ret; .cfi_endproc\n.size f, .-f\n")
	begin := labels["f"]
	second := begin + 1
	s := NewSite(memory, 0x5000, 0x1000)
	code := bytes.Repeat([]byte{0x90}, 7)
	plant := func(p *still) (*Point, error) {
		b := s.Prepare([]node.Patch{{Addr: begin, Make: func(node.Spot) ([]byte, error) { return code, nil }}}, p)
		if err := b.Furnish(p); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(p, b.Fill()); err != nil {
			t.Fatal(err)
		}
		points, errs := b.Results()
		return points[0], errs[0]
	}
	for name, p := range map[string]*still{
		"in code of the monitor's": {surveyor: surveyor, pc: second, inCopy: true},
		"in a signal handler":      {surveyor: surveyor, held: []uint64{second}},
	} {
		if _, err := plant(p); err == nil || s.Stands() > 0 {
			t.Errorf("a thread %s comes to new code: %v", name, err)
		}
	}
	p := &still{surveyor: surveyor, pc: second}
	for i := range uint64(2) { // the second point joins the place of the first
		point, err := plant(p)
		if err != nil {
			t.Fatal(err)
		}
		if point.Exclusive() != "" || point.at != second || !point.Covers(begin) {
			t.Errorf("%+v", point)
		}
		stub := s.places[0].stub
		if want := stub + uint64(len(code)); p.moved != want {
			t.Errorf("with %d points before, the thread continues %d bytes after the beginning of the stub, want %d", i, p.moved-stub, want-stub)
		}
	}
	stub := s.places[0].stub
	p.held = []uint64{second, begin}
	if err := s.WithdrawAll().Commit(p, nil); err != nil {
		t.Fatal(err)
	}
	if p.moved != stub || s.Stands() > 0 {
		t.Errorf("the thread continues at %#x, want %#x", p.moved, stub)
	}
	if p.held[0] != stub || p.held[1] != begin {
		t.Errorf("signal handlers return to %#x, want %#x and %#x", p.held, stub, begin)
	}
}

// assembled returns a module built from a source, and its memory.
func assembled(t *testing.T, source string) (*Surveyor, ram, map[string]uint64) {
	t.Helper()
	dir := t.TempDir()
	file, object := filepath.Join(dir, "f.s"), filepath.Join(dir, "f.so")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", object, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	surveyor, labels := survey(t, object)
	memory := ram{0, make([]byte, 4<<20)}
	copy(memory.bytes[surveyor.Base:], surveyor.Module.Code(0, surveyor.Module.Size))
	return surveyor, memory, labels
}

// shared is memory in which another tool increments a byte just before each write of ours.
type shared struct {
	ram
	code   uint64 // code is below this address
	at     uint64
	writes *byte
}

func (s shared) WriteAt(b []byte, at int64) (int, error) {
	if uint64(at) < s.code {
		s.bytes[s.at]++
		*s.writes++
	}
	return s.ram.WriteAt(b, at)
}

// TestNeighbourBetween checks that bytes that another tool writes between two of our jumps are not
// overwritten.
func TestNeighbourBetween(t *testing.T) {
	var source string
	for _, name := range []string{"f", "g", "h"} {
		source += fmt.Sprintf(".globl %[1]s\n.type %[1]s, @function\n%[1]s: .cfi_startproc; push %%rbx; mov %%rdi, %%rbx; lea 1(%%rbx), %%rax; pop %%rbx; ret; .cfi_endproc\n.size %[1]s, .-%[1]s\n", name)
	}
	surveyor, memory, labels := assembled(t, source)
	between := labels["g"]
	want := memory.bytes[between]
	var writes byte
	s := NewSite(shared{memory, 1 << 20, between, &writes}, 0x5000, 0x1000)
	p := &still{surveyor: surveyor}
	code := func(node.Spot) ([]byte, error) { return []byte{0x90}, nil }
	b := s.Prepare([]node.Patch{{Addr: labels["f"], Make: code}, {Addr: labels["h"], Make: code}}, p)
	if err := b.Furnish(p); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []func() *Batch{func() *Batch { return b }, s.WithdrawAll} {
		b := batch()
		if err := b.Commit(p, b.Fill()); err != nil {
			t.Fatal(err)
		}
		if got := memory.bytes[between]; writes == 0 || got != want+writes {
			t.Errorf("the other tool's byte is %#x, want %#x", got, want+writes)
		}
	}
	if s.Stands() > 0 {
		t.Error("the jumps were not removed")
	}
}
