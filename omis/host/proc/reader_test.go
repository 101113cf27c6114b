//go:build linux

package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

func newReader(t testing.TB, most int) *Reader {
	t.Helper()
	r := NewReader(most)
	t.Cleanup(func() {
		r.Close()
		if n := keptOpen(t); n != 0 || r.open != 0 {
			t.Errorf("%d descriptors stay open, %d are counted", n, r.open)
		}
	})
	return r
}

// keptOpen counts the descriptors of this process for files of /proc/PID and for eBPF
// programs. It does not count pidfds, which os/exec opens too.
func keptOpen(t testing.TB) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		to, _ := os.Readlink(link)
		if strings.HasPrefix(to, "/proc/") && !strings.HasSuffix(to, "/fd") || strings.HasPrefix(to, "anon_inode:bpf") {
			n++
		}
	}
	return n
}

// sleeper starts a process that sleeps.
func sleeper(t testing.TB) (omis.ProcID, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return omis.ProcID{PID: cmd.Process.Pid, Start: s.start}, cmd
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func self(t testing.TB) omis.ProcID {
	t.Helper()
	s, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return omis.ProcID{PID: os.Getpid(), Start: s.start}
}

func wantGone(t *testing.T, err error) {
	t.Helper()
	var e *omis.Error
	if !errors.As(err, &e) || e.Status != omis.UnknownObject {
		t.Errorf("the answer is %v", err)
	}
}

const numeric = node.ProcSchedulingState | node.ProcTotalTime | node.ProcUID | node.ProcPriority

func sleepers(t testing.TB, n int) (ids []omis.ProcID) {
	for range n {
		id, _ := sleeper(t)
		ids = append(ids, id)
	}
	return ids
}

func TestDescriptorsAreBounded(t *testing.T) {
	const most = 20
	ids := sleepers(t, 12) // each has four descriptors
	r := newReader(t, most)
	for range 3 {
		for _, id := range ids {
			i, err := r.Info(id, numeric)
			if err != nil || i.UID != int64(os.Getuid()) {
				t.Fatal(i, err)
			}
			if n := keptOpen(t); n > most || r.open > most || n >= r.open {
				t.Fatalf("%d descriptors are open, %d are counted", n, r.open)
			}
		}
	}
	if n := keptOpen(t); n < most/2 {
		t.Errorf("%d descriptors are kept, of %d", n, most)
	}
}

// TestWithoutDescriptors checks that a Reader closes files that it keeps when the process
// has no descriptors left.
func TestWithoutDescriptors(t *testing.T) {
	ids := sleepers(t, 12)
	r := newReader(t, 1000)
	used, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(len(used) + 10)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	for range 2 {
		for _, id := range ids {
			if _, err := r.Info(id, numeric|node.ProcArgv); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEndedProcess(t *testing.T) {
	r := newReader(t, 0)
	id, cmd := sleeper(t)
	if _, err := r.Info(id, numeric); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	fds := []unix.PollFd{{Fd: int32(r.procs[id].pidfd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		t.Fatal(err)
	}
	for bit := node.ProcGlobalID; bit <= node.LastProcField; bit <<= 1 { // The process is a zombie now.
		_, err := r.Info(id, bit)
		wantGone(t, err)
	}
	end(cmd)
	_, err := r.Info(id, numeric)
	wantGone(t, err)
	_, err = r.Threads(id)
	wantGone(t, err)
	_, err = r.ThreadInfo(id, id.PID, node.ThreadTotalTime)
	wantGone(t, err)
	if n := keptOpen(t); n != 0 {
		t.Errorf("%d descriptors are kept", n)
	}
}

// TestNumberUsedAgain checks that a reused pid is not taken for the former process.
func TestNumberUsedAgain(t *testing.T) {
	r := newReader(t, 0)
	for range 200 {
		id, cmd := sleeper(t)
		if _, err := r.Info(id, numeric); err != nil {
			t.Fatal(err)
		}
		end(cmd)
		// Start times are in clock ticks: wait for the next one.
		time.Sleep(20 * time.Millisecond)
		restore := subject.Next(t, id.PID)
		other, _ := sleeper(t)
		restore()
		if other.PID != id.PID {
			continue // another process got the number first
		}
		if _, err := r.Info(other, numeric); err != nil {
			t.Error(err)
		}
		for _, f := range []node.ProcFields{numeric, node.ProcTotalTime, node.ProcArgv, 0} {
			_, err := r.Info(id, f)
			wantGone(t, err)
		}
		return
	}
	t.Error("no pid was reused")
}

// lastingThread starts a thread of this process that ends on demand, except for the first
// thread, which cannot end.
func lastingThread() (tid int, finish func()) {
	for {
		ids, stop := make(chan int), make(chan struct{})
		go func() {
			runtime.LockOSThread() // without unlock, the thread ends with the goroutine
			id := unix.Gettid()
			ids <- id
			<-stop
			if id == os.Getpid() {
				runtime.UnlockOSThread()
			}
		}()
		if tid = <-ids; tid != os.Getpid() {
			return tid, func() { close(stop) }
		}
		defer close(stop) // the goroutine keeps the first thread, so that the next goroutine gets another one
	}
}

func TestThreadsComeAndGo(t *testing.T) {
	r := newReader(t, 0)
	me := self(t)
	for range 20 {
		tid, finish := lastingThread()
		if _, err := r.ThreadInfo(me, tid, node.ThreadTotalTime|node.ThreadPriority); err != nil {
			t.Fatal(err)
		}
		finish()
		for {
			tids, err := r.Threads(me)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(tids, tid) {
				break
			}
		}
		_, err := r.ThreadInfo(me, tid, node.ThreadTotalTime|node.ThreadPriority)
		wantGone(t, err)
	}
	if n := len(r.procs[me].files); n != 0 {
		t.Errorf("%d files of threads that have ended are kept", n)
	}
	other, _ := sleeper(t)
	_, err := r.ThreadInfo(me, other.PID, 0)
	wantGone(t, err)
}

// TestEnvironmentAfterExec checks that a Reader with open files returns the new
// environment after the process executed a program.
func TestEnvironmentAfterExec(t *testing.T) {
	r := newReader(t, 0)
	cmd := exec.Command("sh", "-c", "echo; read go; exec env -i AFTER=2 sleep 600")
	cmd.Env = []string{"BEFORE=1", "PATH=" + os.Getenv("PATH")}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := omis.ProcID{PID: cmd.Process.Pid, Start: s.start}
	i, err := r.Info(id, allFields)
	if err != nil || !slices.Contains(i.Envp, "BEFORE=1") || i.Argv[0] != "sh" {
		t.Fatal(i, err)
	}
	in.Close()
	for deadline := time.Now().Add(30 * time.Second); ; {
		i, err := r.Info(id, allFields)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(i.Argv, []string{"sleep", "600"}) && slices.Equal(i.Envp, []string{"AFTER=2"}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(i.Argv, i.Envp)
		}
	}
}

// TestManyReaders reads, forgets and ends processes concurrently, with too few
// descriptors for all.
func TestManyReaders(t *testing.T) {
	r := newReader(t, 24)
	ids := sleepers(t, 8)
	short, cmd := sleeper(t)
	var working sync.WaitGroup
	for worker := range 4 {
		working.Go(func() {
			for n := range 300 {
				if _, err := r.Info(ids[(n+worker)%len(ids)], numeric); err != nil {
					t.Error(err)
				}
				if _, err := r.ThreadInfo(ids[n%len(ids)], ids[n%len(ids)].PID, node.ThreadTotalTime); err != nil {
					t.Error(err)
				}
				r.Forget(ids[(n*7)%len(ids)])
				r.Info(short, numeric)
				if n == 150 && worker == 0 {
					end(cmd)
				}
			}
		})
	}
	working.Wait()
	_, err := r.Info(short, numeric)
	wantGone(t, err)
}

func TestReadingAllocatesNothing(t *testing.T) {
	r := newReader(t, 0)
	id, _ := sleeper(t)
	read := func() {
		if _, err := r.ThreadInfo(id, id.PID, node.ThreadSchedulingState|node.ThreadTotalTime); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
