//go:build linux && amd64

package linux

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"mirador/omis/node"
)

// gdbFrames returns the program counters of all frames that gdb shows, by thread.
func gdbFrames(t *testing.T, pid int) map[int][]uint64 {
	t.Helper()
	out, err := exec.Command("gdb", "-q", "-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", "set backtrace past-main on",
		"-ex", "set backtrace past-entry on", "-ex", "python\n"+`
for t in gdb.selected_inferior().threads():
    t.switch()
    f = gdb.newest_frame()
    while f:
        if f.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            print("FRAME %d %d" % (t.ptid[1], f.pc()))
        f = f.older()
`).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	frames := make(map[int][]uint64)
	for _, m := range regexp.MustCompile(`FRAME (\d+) (\d+)`).FindAllSubmatch(out, -1) {
		tid, _ := strconv.Atoi(string(m[1]))
		pc, _ := strconv.ParseUint(string(m[2]), 10, 64)
		frames[tid] = append(frames[tid], pc)
	}
	return frames
}

func TestBacktraceAgreesWithGDB(t *testing.T) {
	for _, flags := range [][]string{{"-O2"}, {"-O0"}, {"-O3", "-fomit-frame-pointer", "-static"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			deep := build(t, "deep.cc", flags...)
			n := openNode(t)
			g := start(t, deep)
			tids, err := n.Threads(g.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, tid := range tids {
				// The first thread may still be in pthread_create.
				awaitState(t, tid, "S")
			}
			traces, err := n.Backtraces(g.ID, tids, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := gdbFrames(t, g.ID.PID)
			for i, tid := range tids {
				var got []uint64
				for _, f := range traces[i].Frames {
					got = append(got, f.PC)
				}
				if traces[i].Err != nil || fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want[tid]) {
					t.Errorf("thread %d: %v\ngot  %x\ngdb  %x", tid, traces[i].Err, got, want[tid])
				}
			}
			short, err := n.Backtraces(g.ID, tids[1:], 3)
			if err != nil || len(short[0].Frames) != 3 {
				t.Error(short, err)
			}
			checkUntouched(t, g)
		})
	}
}

// TestBacktraceInClone reads the stack of a thread in clone, where the C library has no unwind table after
// the system call.
func TestBacktraceInClone(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "sleepers.c"))
	var once sync.Once
	traces := make(chan node.Backtrace, 1)
	_, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(h *node.Hit) {
		once.Do(func() {
			release, tid := h.Hold(), h.TID
			go func() {
				defer release()
				bts, err := n.Backtraces(g.ID, []int{tid}, 0)
				if err != nil {
					bts = []node.Backtrace{{Err: err}}
				}
				traces <- bts[0]
			}()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	bt := <-traces
	modules, err := n.Modules(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	inMain := 0
	for _, f := range bt.Frames {
		if f.PC-modules[0].CodeStart < modules[0].CodeLen {
			inMain++
		}
	}
	// The frames are: clone3, two callers, pthread_create, main, two callers of main, _start.
	if bt.Err != nil || len(bt.Frames) < 6 || inMain != 2 {
		t.Errorf("%x %v, %d frames in the program", bt.Frames, bt.Err, inMain)
	}
}
