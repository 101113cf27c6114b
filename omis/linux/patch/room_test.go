//go:build linux && amd64

package patch

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// call is a call by a function without a check of the stack, as Go's linker reports it: the callee,
// and the stack that the caller has used.
type call struct {
	growth int
	to     string
}

// TestDepthAgreesWithLinker checks that depth is at least the linker's result for every function
// without a check of the stack.
func TestDepthAgreesWithLinker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaves")
	out, err := exec.Command("go", "build", "-ldflags=-debugnosplit", "-o", path, "../testdata/leaves").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls := linkerCalls(string(out))
	taken := make(map[string]int)
	for name := range calls {
		descend(calls, taken, name, 8)
	}
	s, labels := survey(t, path)
	known, all := 0, 0
	for name, least := range taken {
		begin, ok := labels[name]
		if !ok || begin < s.Base {
			continue
		}
		f, err := s.function(begin)
		if err != nil || f.begin != begin || s.checksStack(f) {
			continue
		}
		all++
		got, err := s.depth(f)
		if err == nil {
			known++
		}
		if err == nil && got < least {
			t.Errorf("%s: %d bytes are taken where it begins, by the linker %d", name, got, least)
		}
	}
	t.Logf("of %d functions that check no stack, %d are known", all, known)
	if all < 200 || known < all/2 {
		t.Errorf("of %d functions that check no stack, %d are known", all, known)
	}
}

// linkerCalls parses lines such as "nosplit: main.above<1> +24 -> main.below<1>". It ignores the
// calls that grow the stack, in functions that check it.
func linkerCalls(text string) map[string][]call {
	calls := make(map[string][]call)
	for line := range strings.Lines(text) {
		var name, to string
		var growth int
		if n, _ := fmt.Sscanf(line, "nosplit: %s %d -> %s", &name, &growth, &to); n < 2 || strings.HasPrefix(to, "runtime.morestack<") {
			continue
		}
		calls[symbolOf(name)] = append(calls[symbolOf(name)], call{growth, symbolOf(to)})
	}
	return calls
}

// symbolOf returns the name in the symbol table of a function that the linker names.
func symbolOf(name string) string {
	if plain, abi0 := strings.CutSuffix(name, "<0>"); abi0 {
		return plain + ".abi0"
	}
	plain, _, _ := strings.Cut(name, "<")
	return plain
}

// descend follows the calls of a function that begins with the given bytes in use.
func descend(calls map[string][]call, taken map[string]int, name string, bytes int) {
	if taken[name] >= bytes || name == "indirect" || name == "" {
		return
	}
	taken[name] = bytes
	for _, c := range calls[name] {
		descend(calls, taken, c.to, bytes+c.growth)
	}
}

// TestRoomOfFunctions checks that code can be put into a function without a check of the stack if
// enough room is left.
func TestRoomOfFunctions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaves")
	if out, err := exec.Command("go", "build", "-o", path, "../testdata/leaves").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, labels := survey(t, path)
	for name, want := range map[string]string{
		"main.above": "", "main.below": "", "main.work": "", "runtime.morestack.abi0": "room", "gogo": "room", "runtime.badmorestackg0": "has failed",
	} {
		f, err := s.function(labels[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = s.hasRoom(f)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if d, err := s.depth(s.decoded(s.bounds(labels["main.below"]))); err != nil || d != 8+24 {
		t.Errorf("main.below begins %d bytes deep (%v), want 32", d, err)
	}
}
