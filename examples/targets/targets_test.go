package targets

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"mirador/examples/targets/report"
)

func TestMmulCountsExactly(t *testing.T) {
	const threads, size, rounds = 3, 16, 6
	p := Start(t, "mmul", "--wait", "--stay", "3", "16", "6")
	if r := p.Report(t); r.State != "waiting" || r.Total["dot"] != 0 {
		t.Errorf("before the work: %+v", r)
	}
	p.Go(t)
	r := p.Done(t)
	want := map[string]int64{
		"dot": threads * rounds * size * size, "multiply": threads * rounds, "fill": threads * rounds * 2,
		"transpose": threads * rounds, "calm": threads * rounds, "careful": threads * rounds,
		"risky": threads * rounds, "thrown": threads * rounds / 3,
	}
	for function, n := range want {
		if r.Total[function] != n {
			t.Errorf("%s: counted %d, want %d", function, r.Total[function], n)
		}
	}
	if !r.OK || len(r.Threads) != threads {
		t.Errorf("report %+v", r)
	}
	for _, th := range r.Threads {
		if th.TID <= p.PID || !strings.HasPrefix(th.Name, "multiplier-") || th.Calls["multiply"] != rounds {
			t.Errorf("thread %+v", th)
		}
		if name, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/task/" + strconv.Itoa(th.TID) + "/comm"); err != nil || strings.TrimSpace(string(name)) != th.Name {
			t.Errorf("thread %d is called %q (%v), the report says %s", th.TID, name, err, th.Name)
		}
	}
	p.Go(t)
	if err := p.Wait(t); err != nil {
		t.Error(err)
	}
}

func TestMmulIsDeterministic(t *testing.T) {
	sum := func() string {
		p := Start(t, "mmul", "2", "24", "5")
		if err := p.Wait(t); err != nil {
			t.Fatal(err)
		}
		return p.Done(t).Checksum
	}
	if a, b := sum(), sum(); a != b {
		t.Errorf("checksums %s and %s of the same work", a, b)
	}
}

func TestMmulWritesCountsFile(t *testing.T) {
	file := t.TempDir() + "/counts"
	p := Start(t, "mmul", "--counts", file, "1", "8", "3")
	if err := p.Wait(t); err != nil {
		t.Fatal(err)
	}
	r, err := report.ReadFile(file)
	if err != nil || r.Total["dot"] != 3*64 || r.Checksum != p.Done(t).Checksum {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMmulStopsWhenAsked(t *testing.T) {
	p := Start(t, "mmul", "2", "16") // runs until it is stopped
	if r := p.Report(t); r.State != "working" {
		t.Errorf("state %s", r.State)
	}
	p.Signal(t, 15)
	if err := p.Wait(t); err != nil {
		t.Error(err)
	}
}

func TestForkerTellsOfItsChildren(t *testing.T) {
	p := Start(t, "forker", "4")
	p.Go(t)
	if err := p.Wait(t); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"child 1", "ended 1 1", "exec\n", "fork\n", "ended 4 4"} {
		if !strings.Contains(p.Output(), want) {
			t.Errorf("no %q in\n%s", want, p.Output())
		}
	}
}

func TestStartAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("this test changes the user of a process: run it as root")
	}
	p := StartAs(t, 65534, "mmul", "--wait", "1", "8", "1")
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/status")
	if err != nil || !strings.Contains(string(status), "Uid:\t65534") {
		t.Errorf("%v\n%s", err, status)
	}
}

// recorder is a test that counts its failures.
type recorder struct {
	testing.TB
	errors   int
	cleanups []func()
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }

func TestNoneLeftFindsWhatIsLeft(t *testing.T) {
	r := &recorder{TB: t}
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Env = append(os.Environ(), NoneLeft(r))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	r.cleanups[0]()
	if r.errors != 1 {
		t.Errorf("%d errors for one process left", r.errors)
	}
	again := &recorder{TB: t}
	NoneLeft(again)
	again.cleanups[0]()
	if again.errors != 0 {
		t.Error("an error where nothing was started")
	}
}
