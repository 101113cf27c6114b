//go:build linux

package proc

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// aloneEnv makes the test binary read its own threads without privilege.
const aloneEnv = "MIRADOR_TEST_CROWD"

func TestMain(m *testing.M) {
	if os.Getenv(aloneEnv) != "" {
		fmt.Println(askWithoutPrivilege())
		return
	}
	os.Exit(m.Run())
}

// everything has all fields that crowd reads.
const everything = threadStatFields | node.ThreadTotalTime

// newCrowd returns a Reader whose eBPF program is loaded.
func newCrowd(t testing.TB) *Reader {
	t.Helper()
	r := newReader(t, 0)
	awaitCrowd(r)
	if r.crowd.reader() == nil {
		t.Fatal("threads cannot be read at once")
	}
	return r
}

func awaitCrowd(r *Reader) {
	r.crowd.reader()
	r.crowd.loading.Wait()
}

// manyThreads starts threads of this process that sleep.
func manyThreads(t *testing.T, n int) (tids []int, finish []func()) {
	t.Helper()
	for range n {
		tid, end := lastingThread()
		tids, finish = append(tids, tid), append(finish, end)
	}
	for _, tid := range tids {
		for state := ""; state != "S"; state, _ = ThreadState(os.Getpid(), tid) {
			runtime.Gosched()
		}
	}
	return tids, finish
}

// TestThreadsAtOnceEqualFiles checks that sleeping threads look the same whichever way
// they are read.
func TestThreadsAtOnceEqualFiles(t *testing.T) {
	r := newCrowd(t)
	me := self(t)
	tids, finish := manyThreads(t, 200)
	for _, end := range finish {
		defer end()
	}
	for i, tid := range tids {
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, i%20); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", tid), []byte(fmt.Sprintf("(%d) S", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	infos := r.ThreadInfos(me, tids, everything)
	for _, tid := range tids {
		got, there := infos[tid]
		want, err := r.ThreadInfo(me, tid, everything)
		want.Usage = node.Usage{} // not asked for
		if err != nil || !there || got != want {
			t.Errorf("thread %d: %+v, %t, want %+v, %v", tid, got, there, want, err)
		}
	}
	if other := r.ThreadInfos(me, tids, everything&^node.ThreadName)[tids[0]]; other.Name != "" {
		t.Errorf("name %q, which was not asked for", other.Name)
	}
}

// TestThreadsLeftToFiles checks that ThreadInfos leaves out what ThreadInfo must read.
func TestThreadsLeftToFiles(t *testing.T) {
	r := newCrowd(t)
	me := self(t)
	tids, finish := manyThreads(t, fewest)
	if infos := r.ThreadInfos(me, tids, 0); len(infos) < fewest {
		t.Errorf("%d threads", len(infos))
	}
	if infos := r.ThreadInfos(me, tids[1:], everything); infos != nil {
		t.Errorf("%d threads for a few", len(infos))
	}
	if infos := r.ThreadInfos(me, tids, everything|node.ThreadStackSize); infos != nil {
		t.Errorf("%d threads without what was asked for", len(infos))
	}
	if infos := r.ThreadInfos(omis.ProcID{PID: me.PID, Start: me.Start + 1}, tids, everything); infos != nil {
		t.Error("another process's threads")
	}
	for _, end := range finish {
		end()
	}
	id, cmd := sleeper(t)
	if infos := r.ThreadInfos(id, tids, everything); len(infos) != 1 || infos[id.PID].Name != "sleep" {
		t.Errorf("threads %v of a process with one", infos)
	}
	end(cmd)
	if infos := r.ThreadInfos(id, tids, everything); infos != nil {
		t.Errorf("threads %v of a process that has ended", infos)
	}
}

func TestThreadsStartAndEndWhileRead(t *testing.T) {
	r := newCrowd(t)
	me := self(t)
	tids, finish := manyThreads(t, 3*fewest)
	for n := range tids {
		if infos := r.ThreadInfos(me, tids, everything); len(infos) < len(tids)-n {
			t.Fatalf("%d threads, want at least %d", len(infos), len(tids)-n)
		}
		finish[n]()
		for deadline := time.Now().Add(30 * time.Second); ; {
			if _, there := r.ThreadInfos(me, tids, everything)[tids[n]]; !there {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("thread %d is still listed after its end", tids[n])
			}
		}
		_, err := r.ThreadInfo(me, tids[n], everything)
		wantGone(t, err)
	}
}

// TestSystemTimeNeverFalls: the kernel's own estimates, unlike its files, may decrease.
func TestSystemTimeNeverFalls(t *testing.T) {
	r := newCrowd(t)
	me := self(t)
	q, err := r.ask(me)
	if err != nil {
		t.Fatal(err)
	}
	defer q.done()
	for _, c := range []struct {
		thread instance
		system uint64
		want   time.Duration
	}{
		{instance{7, 100}, 55e6, 50e6}, {instance{7, 100}, 49e6, 50e6}, {instance{7, 100}, 65e6, 60e6}, {instance{7, 101}, 19e6, 10e6},
	} {
		infos := map[int]node.ThreadInfo{7: {Priority: 3}}
		q.neverLess(infos, map[instance]uint64{c.thread: c.system})
		if got := infos[7]; got != (node.ThreadInfo{Priority: 3, SystemTime: c.want}) {
			t.Errorf("%+v, want %v", got, c.want)
		}
	}
}

// TestReaderDoesNotWaitForProgram checks that no caller waits for the eBPF program to
// load, and that a closed reader does not load it.
func TestReaderDoesNotWaitForProgram(t *testing.T) {
	r := newReader(t, 0)
	if r.crowd.loaded.Load() != nil {
		t.Error("the program is loaded before the first question")
	}
	r.ThreadInfos(self(t), make([]int, fewest), everything)
	r.Close()
	awaitCrowd(r)
	if infos := r.ThreadInfos(self(t), make([]int, fewest), everything); infos != nil {
		t.Errorf("a closed reader returns %v", infos)
	}
	unused := newReader(t, 0)
	unused.Close()
	if awaitCrowd(unused); unused.crowd.reader() != nil {
		t.Error("a closed reader has loaded a program")
	}
}

// TestCloseWhileReading checks that a read during Close returns all threads or none.
func TestCloseWhileReading(t *testing.T) {
	r := newCrowd(t)
	me := self(t)
	tids, finish := manyThreads(t, fewest)
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for range 200 {
				if infos := r.ThreadInfos(me, tids, everything); infos != nil && len(infos) < fewest {
					t.Errorf("%d threads", len(infos))
				}
			}
		})
	}
	r.Close()
	working.Wait()
	for _, end := range finish {
		end()
	}
}

func TestThreadsWithoutPrivilege(t *testing.T) {
	if out := subject.RunAgain(t, aloneEnv+"=1", subject.Nobody()); out != "by files" {
		t.Error(out)
	}
}

func askWithoutPrivilege() string {
	r := NewReader(0)
	defer r.Close()
	var tids []int
	for range fewest {
		tid, end := lastingThread()
		defer end()
		tids = append(tids, tid)
	}
	s, err := readStat(os.Getpid())
	if err != nil {
		return err.Error()
	}
	me := omis.ProcID{PID: os.Getpid(), Start: s.start}
	awaitCrowd(r)
	if infos := r.ThreadInfos(me, tids, everything); infos != nil {
		return fmt.Sprint("at once: ", infos)
	}
	for _, tid := range slices.Backward(tids) {
		if info, err := r.ThreadInfo(me, tid, everything); err != nil || info.Name == "" {
			return fmt.Sprint(info, err)
		}
	}
	return "by files"
}
