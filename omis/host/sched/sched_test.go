//go:build linux

package sched

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mirador/examples/targets"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
)

// insideEnv makes the test binary observe one of its own threads.
const insideEnv = "MIRADOR_TEST_OBSERVE"

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		fmt.Println(observeItself())
		return
	}
	// The wake-up is seen on the processor of the waking thread: see onFirstProcessor.
	// New threads inherit the processors of their creators.
	for range 2 {
		tids, err := proc.Threads(os.Getpid())
		if err != nil {
			panic(err)
		}
		for _, tid := range tids {
			if err := onFirstProcessor(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m)
}

// log collects the events of threads.
type log struct {
	mu     sync.Mutex
	events []Event
}

func (l *log) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) of(tid int) (events []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.TID == tid {
			events = append(events, e)
		}
	}
	return events
}

func count(events []Event, k Kind) (n int) {
	for _, e := range events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func observer(t testing.TB, handle func(Event)) *Observer {
	t.Helper()
	o, err := Open(handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// switches returns the kernel's own counts.
func switches(t testing.TB, tid int) (voluntary, involuntary int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		t.Fatal(err)
	}
	_, counts, _ := strings.Cut(string(text), "voluntary_ctxt_switches:")
	if _, err := fmt.Sscanf(counts, "%d\nnonvoluntary_ctxt_switches:%d", &voluntary, &involuntary); err != nil {
		t.Fatal(err)
	}
	return voluntary, involuntary
}

// sleeper starts a thread that sleeps on demand and waits otherwise.
func sleeper(t testing.TB) (tid int, sleep func(times int)) {
	t.Helper()
	orders, done := make(chan int), make(chan int)
	go func() {
		runtime.LockOSThread()
		done <- unix.Gettid()
		for n := range orders {
			for range n {
				unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil)
			}
			done <- n
		}
		close(done)
	}()
	rest := func() {
		for state := byte(0); state != 'S'; time.Sleep(time.Millisecond) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
			if err != nil {
				t.Fatal(err)
			}
			state = proc.StateLetter(stat)
		}
	}
	t.Cleanup(func() {
		close(orders)
		<-done
	})
	tid = <-done
	pin(t, tid)
	rest()
	return tid, func(times int) {
		orders <- times
		<-done
		rest()
	}
}

// settled waits until all events of waiting threads are reported: events are reported in
// order, and those of another thread, which starts to sleep now, come last.
func settled(t *testing.T, o *Observer, l *log) {
	t.Helper()
	last, sleep := sleeper(t)
	if err := o.Watch(last, Blocked); err != nil {
		t.Fatal(err)
	}
	sleep(1)
	for deadline := time.Now().Add(30 * time.Second); count(l.of(last), Blocked) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the events are not reported")
		}
	}
	if err := o.Watch(last, 0); err != nil {
		t.Fatal(err)
	}
}

func TestCountsAreThoseOfTheKernel(t *testing.T) {
	var l log
	o := observer(t, l.add)
	p := targets.Start(t, "mmul", "--wait", "--pace", "300", "2", "48", "0")
	tids := threads(t, p.PID)
	for _, tid := range tids {
		pin(t, tid)
	}
	before := map[int][2]int{}
	for _, tid := range tids {
		v, i := switches(t, tid)
		before[tid] = [2]int{v, i}
		if err := o.Watch(tid, All); err != nil {
			t.Fatal(err)
		}
	}
	p.Go(t)
	for enough := 0; enough < 200; time.Sleep(100 * time.Millisecond) {
		enough = 0
		for _, tid := range tids {
			v, _ := switches(t, tid)
			enough += v - before[tid][0]
		}
	}
	p.Signal(t, syscall.SIGSTOP) // stops all threads while the counts are compared
	for _, tid := range tids {
		for state := ""; state != "T"; time.Sleep(time.Millisecond) {
			var err error
			if state, err = proc.ThreadState(p.PID, tid); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled(t, o, &l)
	var some int
	for _, tid := range tids {
		events := l.of(tid)
		v, i := switches(t, tid)
		v, i = v-before[tid][0], i-before[tid][1]
		some += v
		if got := count(events, Descheduled); got != v+i {
			t.Errorf("thread %d: descheduled %d times; the kernel counts %d + %d switches", tid, got, v, i)
		}
		// A stop is not a block, but counts as a voluntary switch.
		if got := count(events, Blocked); got > v || got < v-1 {
			t.Errorf("thread %d: blocked %d times; the kernel counts %d voluntary switches", tid, got, v)
		}
		checkOrder(t, events)
	}
	if some < 100 {
		t.Errorf("only %d switches were observed", some)
	}
	if n := o.Lost(); n != 0 {
		t.Errorf("%d events are lost", n)
	}
	p.Signal(t, syscall.SIGCONT)
}

// onFirstProcessor binds a thread to the first processor. In a virtual machine where the
// kernel's tracepoints, and perf's, sometimes missed events on other processors, this
// makes the counts exact.
func onFirstProcessor(tid int) error {
	var set unix.CPUSet
	set.Set(0)
	return unix.SchedSetaffinity(tid, &set)
}

func pin(t testing.TB, tid int) {
	t.Helper()
	if err := onFirstProcessor(tid); err != nil {
		t.Fatal(err)
	}
}

// checkOrder checks that events come in pairs and in order. The first one may be the end
// of an unobserved period.
func checkOrder(t *testing.T, events []Event) {
	t.Helper()
	var running, waiting, last Event
	for _, e := range events {
		if e.Time < last.Time {
			t.Errorf("%+v after %+v", e, last)
		}
		switch e.Kind {
		case Scheduled, Descheduled:
			if running.Kind == e.Kind {
				t.Errorf("%+v after %+v", e, running)
			}
			running = e
		case Blocked, Unblocked:
			if waiting.Kind == e.Kind {
				t.Errorf("%+v after %+v", e, waiting)
			}
			waiting = e
		}
		if e.Kind == Scheduled && waiting.Kind == Blocked {
			t.Errorf("scheduled at %d while blocked since %d", e.Time, waiting.Time)
		}
		last = e
	}
}

func threads(t testing.TB, pid int) (tids []int) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var tid int
		fmt.Sscan(e.Name(), &tid)
		tids = append(tids, tid)
	}
	return tids
}

func TestOnlyWantedEventsAreReported(t *testing.T) {
	var l log
	o := observer(t, l.add)
	tid, sleep := sleeper(t)
	other, sleepOther := sleeper(t)
	if err := o.Watch(tid, Blocked); err != nil {
		t.Fatal(err)
	}
	sleep(20)
	sleepOther(20)
	settled(t, o, &l)
	if n := count(l.of(tid), Blocked); n < 20 || n != len(l.of(tid)) {
		t.Errorf("%d events, %d of them wanted", len(l.of(tid)), n)
	}
	if n := len(l.of(other)); n != 0 {
		t.Errorf("%d events of a thread that is not watched", n)
	}
	if err := o.Watch(tid, 0); err != nil {
		t.Fatal(err)
	}
	before := len(l.of(tid))
	sleep(20)
	settled(t, o, &l)
	if n := len(l.of(tid)); n != before {
		t.Errorf("%d events after the end", n-before)
	}
	if err := o.Watch(tid, 0); err != nil {
		t.Errorf("ending twice: %v", err)
	}
}

func TestUnblockedOfThreadThatWaitedBefore(t *testing.T) {
	var l log
	o := observer(t, l.add)
	tid, sleep := sleeper(t)
	if err := o.Watch(tid, All); err != nil {
		t.Fatal(err)
	}
	sleep(1)
	settled(t, o, &l)
	if e := l.of(tid); len(e) == 0 || e[0].Kind != Unblocked {
		t.Errorf("events %+v", e)
	}
}

func TestTimeIsMonotonic(t *testing.T) {
	var l log
	o := observer(t, l.add)
	tid, sleep := sleeper(t)
	o.Watch(tid, All)
	var before, after unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
	sleep(3)
	settled(t, o, &l)
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
	for _, e := range l.of(tid) {
		if e.Time < before.Nano() || e.Time > after.Nano() {
			t.Errorf("%+v is not between %d and %d", e, before.Nano(), after.Nano())
		}
	}
}

func TestLostEventsAreCounted(t *testing.T) {
	release := make(chan struct{})
	o, err := open(func(Event) { <-release }, 4096)
	if err != nil {
		t.Fatal(err)
	}
	tid, sleep := sleeper(t)
	if err := o.Watch(tid, All); err != nil {
		t.Fatal(err)
	}
	sleep(100)
	if n := o.Lost(); n < 100 {
		t.Errorf("only %d of 400 events are lost, though the handler took none", n)
	}
	close(release)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if n := o.Lost(); n != 0 {
		t.Errorf("%d events are lost after the end", n)
	}
}

func TestWithoutPrivilege(t *testing.T) {
	out := subject.RunAgain(t, insideEnv+"=1", subject.Nobody())
	if want := "cannot observe scheduling: the monitor lacks CAP_BPF and CAP_PERFMON (OMIS_NO_PERMISSION)"; out != want {
		t.Errorf("%s\nwant %s", out, want)
	}
}

func TestInsidePIDNamespace(t *testing.T) {
	if out := subject.RunAgain(t, insideEnv+"=1", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}); out != "seen" {
		t.Error(out)
	}
}

func observeItself() string {
	var l log
	o, err := Open(l.add)
	if err != nil {
		var e *omis.Error
		if errors.As(err, &e) {
			return fmt.Sprintf("%v (%v)", err, e.Status)
		}
		return err.Error()
	}
	defer o.Close()
	runtime.LockOSThread()
	tid := unix.Gettid()
	if err := onFirstProcessor(tid); err != nil {
		return err.Error()
	}
	if err := o.Watch(tid, All); err != nil {
		return err.Error()
	}
	for range 10 {
		unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n := count(l.of(tid), Blocked)
		if n >= 10 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("thread %d: blocked %d times", tid, n)
		}
	}
	return "seen"
}
