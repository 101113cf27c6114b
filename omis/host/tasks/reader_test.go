//go:build linux

package tasks

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/subject"
)

// insideEnv makes the test binary read its own threads.
const insideEnv = "MIRADOR_TEST_TASKS"

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		fmt.Println(readItself())
		return
	}
	os.Exit(m.Run())
}

func readItself() string {
	runtime.LockOSThread()
	r, err := Open()
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	tids, err := numbers(r, os.Getpid(), 1000)
	if err != nil || !slices.Contains(tids, unix.Gettid()) || tids[0] != os.Getpid() {
		return fmt.Sprint(tids, err)
	}
	return "seen"
}

func numbers(r *Reader, pid, most int) (tids []int, err error) {
	err = r.Read(pid, most, func(t *Task) { tids = append(tids, t.TID) })
	return tids, err
}

func open(t *testing.T) *Reader {
	t.Helper()
	before := objects(t)
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Read(os.Getpid(), 1, func(*Task) {}); err == nil {
			t.Error("a closed reader returns threads")
		}
		if n := objects(t); n != before {
			t.Errorf("%d eBPF descriptors are open, %d before", n, before)
		}
	})
	return r
}

// objects counts the descriptors of this process for eBPF programs, links and iterators.
func objects(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.HasPrefix(to, "anon_inode:bpf") {
			n++
		}
	}
	return n
}

// worker starts a thread that uses processor time both in user and kernel mode, and then
// sleeps until the test ends it.
func worker(t *testing.T, work time.Duration) (tid int) {
	t.Helper()
	ids, end := make(chan int), make(chan struct{})
	t.Cleanup(func() { close(end) })
	go func() {
		runtime.LockOSThread() // without unlock, the thread ends with the goroutine
		for cpuTime() < work {
			unix.Getpriority(unix.PRIO_PROCESS, 0)
		}
		ids <- unix.Gettid()
		<-end
	}()
	return <-ids
}

// cpuTime returns the CPU time of the calling thread.
func cpuTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// TestTaskEqualsFiles compares what Read returns with the files in /proc. It reads the
// files last, because the kernel remembers the times that it shows in a file, and adjusts
// the times that it computes later to them.
func TestTaskEqualsFiles(t *testing.T) {
	r := open(t)
	tid := worker(t, 300*time.Millisecond)
	dir := fmt.Sprintf("/proc/self/task/%d/", tid)
	for content(t, dir+"wchan") == "0" { // Wait until it sleeps. Reading stat would make the kernel remember times.
	}
	for _, name := range []string{"first", "of 15 letters ()"} {
		if err := os.WriteFile(dir+"comm", []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := r.Read(os.Getpid(), 1000, func(k *Task) {
			if k.TID == tid {
				got = fmt.Sprintf("%d (%s) %c stime %d nice %d start %d ran %d", k.TID, k.CommandName(), k.State, k.System()/1e7, k.Nice, k.Start/1e7, k.Ran)
			}
		}); err != nil {
			t.Fatal(err)
		}
		stat := content(t, dir+"stat")
		name, rest := stat[:strings.LastIndexByte(stat, ')')+1], strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		ran, _, _ := strings.Cut(content(t, dir+"schedstat"), " ")
		if want := fmt.Sprintf("%s %s stime %s nice %s start %s ran %s", name, rest[0], rest[12], rest[16], rest[19], ran); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if rest[12] == "0" {
			t.Error("the thread spent no time in kernel mode")
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestManyThreads reads more threads than the kernel returns in one read, and then asks
// for only some of them.
func TestManyThreads(t *testing.T) {
	const many = bufferSize/recordSize + 50
	r := open(t)
	for range many {
		worker(t, 0)
	}
	tids, err := numbers(r, os.Getpid(), 10*many)
	slices.Sort(tids)
	if err != nil || len(tids) < many || len(slices.Compact(tids)) < many {
		t.Errorf("%d threads, want at least %d: %v", len(tids), many, err)
	}
	if tids, err := numbers(r, os.Getpid(), 1); err != nil || len(tids) == 0 || len(tids) > bufferSize/recordSize {
		t.Errorf("%d threads, although the test asked for one: %v", len(tids), err)
	}
	if tids, err := numbers(r, 1<<22+1, 1000); len(tids) != 0 {
		t.Errorf("a process that does not exist has threads %v, %v", tids, err)
	}
}

func TestProcessorsWithoutTicks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nohz_full")
	if err := checkAccounting(path); err != nil {
		t.Errorf("a kernel without the list of processors: %v", err)
	}
	for list, want := range map[string]string{"  (null)\n": "<nil>", "\n": "<nil>", "2-7\n": "processors 2-7 have no ticks"} {
		if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(checkAccounting(path)); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
}

func TestWithoutPrivilege(t *testing.T) {
	out := subject.RunAgain(t, insideEnv+"=1", subject.Nobody())
	if !strings.HasPrefix(out, "cannot load a task iterator: ") {
		t.Error(out)
	}
}

func TestInsidePIDNamespace(t *testing.T) {
	if out := subject.RunAgain(t, insideEnv+"=1", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}); out != "seen" {
		t.Error(out)
	}
}
