//go:build linux && amd64

package patch

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// call is what Go's linker tells of a function without a check of the stack: how much it has
// taken when it calls another.
type call struct {
	growth int
	to     string
}

// TestDepthAgreesWithLinker: where a function without a check of the stack begins, at least as
// much of the room is taken as Go's linker reckons.
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

// linkerCalls reads lines such as "nosplit: main.above<1> +24 -> main.below<1>". What they say
// of functions that check the stack, the call that grows it, is left out.
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

// symbolOf is the name that the symbol table has for a function of the linker's.
func symbolOf(name string) string {
	if plain, abi0 := strings.CutSuffix(name, "<0>"); abi0 {
		return plain + ".abi0"
	}
	plain, _, _ := strings.Cut(name, "<")
	return plain
}

// descend follows the calls of a function where so much is taken when it begins.
func descend(calls map[string][]call, taken map[string]int, name string, bytes int) {
	if taken[name] >= bytes || name == "indirect" || name == "" {
		return
	}
	taken[name] = bytes
	for _, c := range calls[name] {
		descend(calls, taken, c.to, bytes+c.growth)
	}
}

// TestRoomOfFunctions: code goes to a function without a check of the stack if enough of the
// room is left.
func TestRoomOfFunctions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaves")
	if out, err := exec.Command("go", "build", "-o", path, "../testdata/leaves").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, labels := survey(t, path)
	for name, want := range map[string]string{
		"main.above": "", "main.below": "", "main.work": "", "runtime.morestack.abi0": "room", "gogo": "room", "runtime.badmorestackg0": "where there is none",
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
