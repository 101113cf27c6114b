//go:build linux && amd64

package subject

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func compiled(t *testing.T, name string) *Program {
	t.Helper()
	p, err := Compile(t.Context(), "../reference", name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func started(t *testing.T, p *Program) *Target {
	t.Helper()
	target, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.End(); err != nil {
			t.Error(err)
		}
	})
	return target
}

// code returns the code of a function, up to its return.
func code(t *testing.T, p *Program, function string) []byte {
	t.Helper()
	f, err := elf.Open(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	if p.Entry(function) < text.Addr || p.Return(function) <= p.Entry(function) {
		t.Fatalf("%s is from %#x to %#x", function, p.Entry(function), p.Return(function))
	}
	list := make([]byte, p.Return(function)-p.Entry(function)+1)
	if _, err := text.ReadAt(list, int64(p.Entry(function)-text.Addr)); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTwinsAreAlike checks that a function and its twin are identical.
func TestTwinsAreAlike(t *testing.T) {
	p := compiled(t, "subject")
	for function, begin := range map[string][]byte{"pushed": {0x55}, "guarded": {0xf3, 0x0f, 0x1e, 0xfa, 0x55}, "moved": {0xb8}} {
		one, other := code(t, p, function), code(t, p, function+"_twin")
		if !bytes.Equal(one, other) {
			t.Errorf("%s is % x, its twin % x", function, one, other)
		}
		const line = 64
		if p.Entry(function)%line != 0 || p.Entry(function+"_twin")%line != 0 {
			t.Errorf("%s does not begin where its twin does in a line of the cache", function)
		}
		if !bytes.HasPrefix(one, begin) || one[len(one)-1] != 0xc3 {
			t.Errorf("%s is % x", function, one)
		}
	}
}

func TestTenThousandFunctions(t *testing.T) {
	p := compiled(t, "many")
	last := code(t, p, "f_9999")
	if !bytes.Equal(last, code(t, p, "g_9999")) || !bytes.Equal(last, code(t, p, "f_0")) {
		t.Error("functions differ")
	}
	target := started(t, p)
	if _, err := target.Ask(1, "call 10000"); err != nil {
		t.Error(err)
	}
	if got, err := target.Ask(2, "cost 1000 2"); err != nil || got[0] <= 0 || got[1] <= 0 {
		t.Errorf("calls took %v, %v", got, err)
	}
	if _, err := target.Ask(0, "watch 0"); err != nil {
		t.Fatal(err)
	}
	if got, err := target.Ask(3, "watched"); err != nil || got[1] < got[0] {
		t.Errorf("the thread was stopped for %v, %v", got, err)
	}
}

func TestCommands(t *testing.T) {
	target := started(t, compiled(t, "subject"))
	if err := target.Pin(0); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for _, command := range []string{"cost pushed lb %d 3", "cost guarded tb %d 3", "mix moved 1 %d 3"} {
		least := []float64{math.Inf(1), math.Inf(1)} // of many tries, because other processes may take the processor
		for range 20 {
			got, err := target.Ask(2, command, n)
			if err != nil {
				t.Fatal(err)
			}
			least[0], least[1] = min(least[0], got[0]), min(least[1], got[1])
		}
		if least[0] < n/10 || least[0] > 2*least[1] || least[1] > 2*least[0] {
			t.Errorf("%q took %v and %v ns", fmt.Sprintf(command, n), least[0], least[1])
		}
	}
	for _, command := range []string{"run pushed %d 100", "twin pushed %d 100"} {
		if got, err := target.Ask(1, command, n); err != nil || got[0] < 100*n/10 {
			t.Errorf("%s took %v, %v", command, got, err)
		}
	}
	for _, command := range []string{"threads", "spared"} {
		got, err := target.Ask(3, "%s pushed 1 4 20", command)
		if err != nil || got[0] < 80 || got[1] <= 0 || got[2] < 20e6 {
			t.Errorf("%s: %v, %v", command, got, err)
		}
	}
	if got, err := target.Ask(1, "syscalls 3"); err != nil || got[0] <= 0 {
		t.Errorf("a system call took %v, %v", got, err)
	}
}

func TestUnknownCommand(t *testing.T) {
	target, err := compiled(t, "subject").Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Ask(1, "dance"); err == nil || !strings.Contains(err.Error(), "cannot obey dance") {
		t.Errorf("the program accepted the command: %v", err)
	}
	_ = target.End() // its status is an error, which was reported already
}

func TestMissing(t *testing.T) {
	err := fmt.Errorf("peer: %w", &Missing{"it is not installed"})
	if why, missing := WhyMissing(err); !missing || why != "it is not installed" {
		t.Errorf("%q, %v", why, missing)
	}
	if _, missing := WhyMissing(errors.New("broken")); missing {
		t.Error("a failure is taken for a missing contender")
	}
}
