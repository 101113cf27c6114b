//go:build linux && amd64

package linux

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
)

// euStack returns the program counters that eu-stack prints, by thread. A stack ends where eu-stack finds
// no unwind table.
func euStack(t *testing.T, pid int) map[int][]uint64 {
	t.Helper()
	// eu-stack fails if it finds code without unwind tables; ignore that.
	out, _ := exec.Command("eu-stack", "-n", "0", "-p", fmt.Sprint(pid)).CombinedOutput()
	frames := make(map[int][]uint64)
	tid := 0
	for line := range strings.Lines(string(out)) {
		if m := regexp.MustCompile(`^TID (\d+):`).FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
		}
		if m := regexp.MustCompile(`^#\d+\s+0x([0-9a-f]+)`).FindStringSubmatch(line); m != nil {
			pc, _ := strconv.ParseUint(m[1], 16, 64)
			frames[tid] = append(frames[tid], pc)
		}
		if strings.Contains(line, fmt.Sprintf("tid %d at 0x", tid)) && len(frames[tid]) > 0 {
			frames[tid] = frames[tid][:len(frames[tid])-1]
		}
	}
	if len(frames) == 0 {
		t.Fatalf("eu-stack printed\n%s", out)
	}
	return frames
}

// buildGo compiles a Go program in a folder of testdata.
func buildGo(t *testing.T, folder string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), folder)
	args := append([]string{"build", "-o", out}, flags...)
	if msg, err := exec.Command("go", append(args, "./testdata/"+folder)...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

// TestBacktraceAgreesWithEuStack compares all frames. deepest is the least number of frames of the longest
// stack.
func TestBacktraceAgreesWithEuStack(t *testing.T) {
	for name, c := range map[string]struct {
		program func() string
		deepest int
	}{
		"optimised":         {func() string { return build(t, "deep.cc", "-O3") }, 30},
		"static, no frames": {func() string { return build(t, "deep.cc", "-O2", "-fomit-frame-pointer", "-static") }, 30},
		"frame pointers":    {func() string { return build(t, "deep.cc", "-O1", "-fno-omit-frame-pointer") }, 30},
		"debug table": {func() string {
			return build(t, "deep.cc", "-O2", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
		}, 30},
		"one section a function": {func() string { return build(t, "deep.cc", "-Os", "-ffunction-sections", "-Wl,--gc-sections") }, 30},
		"Go":                     {func() string { return buildGo(t, "deepgo") }, 35},
	} {
		t.Run(name, func(t *testing.T) { compareWithEuStack(t, c.program(), c.deepest) })
	}
}

func compareWithEuStack(t *testing.T, program string, deepest int) {
	n := openNode(t)
	g := start(t, program)
	tids, err := n.Threads(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		awaitState(t, tid, "S")
	}
	// Stop the threads of Go's runtime, which wake from time to time.
	unix.Kill(g.ID.PID, unix.SIGSTOP)
	for _, tid := range tids {
		awaitState(t, tid, "T")
	}
	compareStacks(t, n, g, deepest)
	unix.Kill(g.ID.PID, unix.SIGCONT)
}

// compareStacks compares the stacks of a stopped process with eu-stack's.
func compareStacks(t *testing.T, n *Node, g *target, deepest int) {
	t.Helper()
	tids, err := n.Threads(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	traces, err := n.Backtraces(g.ID, tids, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := euStack(t, g.ID.PID)
	longest := 0
	for i, tid := range tids {
		var got []uint64
		for _, f := range traces[i].Frames {
			got = append(got, f.PC)
		}
		longest = max(longest, len(want[tid]))
		if common := min(len(got), len(want[tid])); traces[i].Err != nil || common < len(want[tid]) || !slices.Equal(got[:common], want[tid]) {
			t.Errorf("thread %d: %v\ngot      %x\neu-stack %x", tid, traces[i].Err, got, want[tid])
		}
		if len(got) > len(want[tid])+1 {
			t.Errorf("thread %d has more frames than in eu-stack: %x, want %x", tid, got, want[tid])
		}
	}
	if longest < deepest {
		t.Errorf("the longest stack has %d frames", longest)
	}
}

// TestBacktraceInVDSO stops a process by SIGSTOP until it is in the vdso, so that eu-stack sees the same
// stack.
func TestBacktraceInVDSO(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "clock.c", "-O2"))
	maps, err := proc.Maps(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	vdso := maps[slices.IndexFunc(maps, func(m proc.Mapping) bool { return m.Path == "[vdso]" })]
	for try := 0; ; try++ {
		if try == 200 {
			t.Fatal("the process was never stopped in the vdso")
		}
		unix.Kill(g.ID.PID, unix.SIGSTOP)
		awaitState(t, g.ID.PID, "T")
		traces, err := n.Backtraces(g.ID, []int{g.ID.PID}, 0)
		if err != nil || traces[0].Err != nil {
			t.Fatal(err, traces)
		}
		if pc := traces[0].Frames[0].PC; pc >= vdso.Start && pc < vdso.End {
			break
		}
		unix.Kill(g.ID.PID, unix.SIGCONT)
	}
	compareStacks(t, n, g, 6)
	unix.Kill(g.ID.PID, unix.SIGCONT)
}
