//go:build linux

package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// machine returns the configuration with the placements of this machine.
func machine(t *testing.T) Config {
	t.Helper()
	node, err := linux.Open(linux.Config{Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	k, in := kernel.New(nil), inline.New(node)
	t.Cleanup(func() {
		if err := errors.Join(node.Close(context.Background()), in.Close(), k.Close()); err != nil {
			t.Error(err)
		}
	})
	return Config{Node: node, Placers: []program.Placer{k, in}, File: filepath.Join(t.TempDir(), "costs.json")}
}

func known(t *testing.T, k *Costs, placement, kind string) program.Cost {
	t.Helper()
	c, ok := k.Cost(placement, kind)
	if !ok {
		t.Fatalf("the cost of %s, %s is not known", placement, kind)
	}
	return c
}

// TestCalibrate checks orders of magnitude that hold on any machine: a hit takes an
// exception or two, or a switch between processes or two. It tries several times, because
// a measurement on a busy machine may be wrong.
func TestCalibrate(t *testing.T) {
	for try := 1; ; try++ {
		k := New(machine(t))
		for _, placement := range []string{inline.Name, kernel.Name, Held} {
			if err := k.Try(placement); err != nil {
				t.Fatal(err)
			}
		}
		wrong := errors.Join(kernelCosts(t, k), inlineCosts(t, k, "entry"), inlineCosts(t, k, "inside"), moreCosts(t, k), holdingCosts(t, k))
		switch {
		case wrong == nil:
			return
		case try == 10:
			t.Fatal(wrong)
		}
		t.Logf("at try %d: %v", try, wrong)
	}
}

func kernelCosts(t *testing.T, k *Costs) error {
	t.Helper()
	quick, slow := known(t, k, kernel.Name, kernel.Emulated), known(t, k, kernel.Name, kernel.Stepped)
	t.Logf("emulated %+v, stepped %+v", quick, slow)
	for _, c := range []program.Cost{quick, slow} {
		if c.Count < 50 || c.Count > 100_000 || c.Time < 50 || c.Bias(c) < 0.2*c.Count || c.Bias(c) > 2*c.Time {
			return fmt.Errorf("a hit costs %+v", c)
		}
	}
	if quick.Count >= slow.Count || quick.After >= slow.After {
		return fmt.Errorf("an emulated instruction costs more than one that is stepped over: %+v, %+v", quick, slow)
	}
	return nil
}

func inlineCosts(t *testing.T, k *Costs, kind string) error {
	t.Helper()
	fast, ordered := known(t, k, inline.Name, kind), known(t, k, inline.Name, kind+", ordered")
	t.Logf("%s: fast %+v, ordered %+v", kind, fast, ordered)
	if some := known(t, k, inline.Name, kind+", ordered, sampled"); some.Count > ordered.Time/2 || some.Time != ordered.Time {
		return fmt.Errorf("inline, %s: where only some are timed %+v, where all are %+v", kind, some, ordered)
	}
	bias := fast.Bias(known(t, k, inline.Name, "return"))
	// A processor may execute a read of the fast clock before the instructions in front of it,
	// so the bias may be negative: -14 ns where a read takes 3 ns.
	if fast.Time > 100 || ordered.Time > 300 || ordered.Time < fast.Time || ordered.After <= 0 || math.Abs(bias) > 100 {
		return fmt.Errorf("inline, %s: by the fast clock %+v, by the ordered one %+v", kind, fast, ordered)
	}
	return nil
}

// moreCosts checks the costs of histograms and records.
func moreCosts(t *testing.T, k *Costs) (wrong error) {
	t.Helper()
	for _, at := range []struct{ kind, clock string }{{"return", ""}, {"return", ", ordered"}, {"inside", ", ordered, sampled"}} {
		count, plain := known(t, k, inline.Name, at.kind), known(t, k, inline.Name, at.kind+at.clock)
		filling, record := known(t, k, inline.Name, at.kind+at.clock+", histogram"), known(t, k, inline.Name, at.kind+", traced")
		t.Logf("%v: to time %+v, with a histogram %+v; to append a record %+v", at, plain, filling, record)
		if filling.Time < 0.8*plain.Time || filling.Time > 2*plain.Time+20 || filling.After != plain.After {
			wrong = errors.Join(wrong, fmt.Errorf("%v: to time %+v, with a histogram %+v", at, plain, filling))
		}
		wrong = errors.Join(wrong, recordCost(at.kind, count, record))
	}
	for _, kind := range []string{kernel.Stepped, kernel.Emulated} {
		wrong = errors.Join(wrong, recordCost(kind, known(t, k, kernel.Name, kind), known(t, k, kernel.Name, kind+", traced")))
	}
	return wrong
}

func recordCost(kind string, count, record program.Cost) error {
	if record.Count < 0.8*count.Count || record.Count > 2*count.Count+50 || record.Time != 0 {
		return fmt.Errorf("%s: to count %+v, to append a record %+v", kind, count, record)
	}
	return nil
}

func holdingCosts(t *testing.T, k *Costs) error {
	t.Helper()
	for _, how := range []string{node.HeldByPtrace, node.HeldByRendezvous} {
		if c := known(t, k, Held, how); c.Count < 200 || c.Count > 1e6 {
			return fmt.Errorf("to hold a thread by %s costs %+v", how, c)
		}
	}
	return nil
}

// TestCalibrateWithoutClock checks that the cost of counting is known even if code in
// programs cannot read the time.
func TestCalibrateWithoutClock(t *testing.T) {
	c := machine(t)
	in := inline.NewWith(c.Node.(*linux.Node), func() (clock.Clock, error) { return clock.Clock{}, errors.New("the kernel's clock is hpet") })
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	k := New(Config{Node: c.Node, Placers: []program.Placer{in}})
	if err := k.Try(inline.Name); err != nil {
		t.Fatal(err)
	}
	if kinds := k.Kinds(inline.Name); !slices.Equal(kinds, []string{"entry", "inside", "return"}) {
		t.Errorf("kinds %v", kinds)
	}
	for _, kind := range k.Kinds(inline.Name) {
		if c := known(t, k, inline.Name, kind); c.Count <= 0 || c.Count > 1000 || c.Time != 0 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

// TestDummyCannotStart checks that a dummy that cannot be started is an error.
func TestDummyCannotStart(t *testing.T) {
	c := machine(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if err := New(c).Try(inline.Name); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Error(err)
	}
}

// timedBy returns the mean of the intervals that programs measure of a function of the
// dummy, and the duration of a call without probes; both of the quietest batch.
func timedBy(t *testing.T, node node.Node, p program.Placer, s *sites, work int) (mean, truth float64) {
	t.Helper()
	d, err := start(node.Identify)
	if err != nil {
		t.Fatal(err)
	}
	defer d.end()
	trials := []*trial{{begin: "begin", end: "end", function: 1}}
	remove, err := programs{p}.plant(d, trials, s)
	if err != nil {
		t.Fatal(err)
	}
	mean, truth = math.Inf(1), math.Inf(1)
	for range 400 {
		// Without probes, many calls make the overhead of a batch negligible; with
		// probes, few calls keep some batches from being interrupted on a busy machine.
		calls, few := max(20, 10_000/work), max(5, 4000/work)
		if _, _, err := trials[0].read(); err != nil {
			t.Fatal(err)
		}
		bare, err := d.call(0, calls, work)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.call(1, few, work); err != nil {
			t.Fatal(err)
		}
		m, _, err := trials[0].read()
		if err != nil {
			t.Fatal(err)
		}
		mean, truth = min(mean, m), min(truth, bare)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	return mean, truth
}

// tries collects the results of several tries. The costs of a uprobe and of the exceptions
// behind it change by a tenth from one minute to the next on some virtual machines. So
// the three times of one try belong together, and the median over the tries counts.
type tries struct{ means, truths, biases, errors []float64 }

func (a *tries) add(mean, truth, bias float64) {
	a.means, a.truths, a.biases = append(a.means, mean), append(a.truths, truth), append(a.biases, bias)
	a.errors = append(a.errors, mean-bias-truth)
}

func middle(list []float64) float64 { return slices.Sorted(slices.Values(list))[(len(list)-1)/2] }

// TestBiasMakesTheTruth checks that the measured interval minus the bias is the true
// duration, for functions of different lengths with probes at different places. It tries
// several times, because the machine may be busy.
func TestBiasMakesTheTruth(t *testing.T) {
	c := machine(t)
	var wrong []string
	known := make(map[string]*tries)
	for range 25 {
		if wrong = untruths(t, c, known); wrong == nil {
			return
		}
	}
	t.Errorf("even the last of several tries differs: %s", strings.Join(wrong, "\n"))
}

// ofBias is the tolerated error of the result in relation to the bias: on machines with
// expensive exceptions, a uprobe costs as much as the function it is set on.
const ofBias = 0.05

// untruths makes a new calibration, and describes the results that are still wrong.
func untruths(t *testing.T, c Config, all map[string]*tries) (wrong []string) {
	t.Helper()
	k := New(Config{Node: c.Node, Placers: c.Placers})
	for _, p := range c.Placers {
		if err := k.Try(p.Name()); err != nil {
			t.Fatal(err)
		}
	}
	inKernel, inCode := c.Placers[0], c.Placers[1]
	for _, at := range []struct {
		what          string
		placer        program.Placer
		clock         program.Clock
		oneIn         int64
		begin, end    uint64
		kind, endKind string
		work          int
		tolerance     float64
	}{
		{"kernel, from a push to a return", inKernel, 0, 0, begins[0], ends[0], kernel.Emulated, kernel.Stepped, 800, 0.04},
		{"kernel, from a push to a push", inKernel, 0, 0, begins[0], ends[1], kernel.Emulated, kernel.Emulated, 800, 0.04},
		{"kernel, from a mov to a return", inKernel, 0, 0, begins[2], ends[0], kernel.Stepped, kernel.Stepped, 800, 0.1},
		{"inline, from the entry to a return", inCode, program.ClockOrdered, 0, begins[0], ends[0], "entry, ordered", "return, ordered", 5, 0.05},
		{"inline, long, by the fast clock", inCode, program.ClockFast, 0, begins[0], ends[0], "entry", "return", 120, 0.04},
		{"inline, one in ten", inCode, program.ClockOrdered, 10, begins[0], ends[0], "entry, ordered, sampled", "return, ordered, sampled", 20, 0.08},
	} {
		bias := known(t, k, at.placer.Name(), at.kind).Bias(known(t, k, at.placer.Name(), at.endKind))
		mean, truth := timedBy(t, c.Node, at.placer, &sites{clock: at.clock, oneIn: at.oneIn, begin: []site{{"begin", at.begin}}, end: []site{{"end", at.end}}}, at.work)
		if all[at.what] == nil {
			all[at.what] = &tries{}
		}
		a := all[at.what]
		a.add(mean, truth, bias)
		mean, truth, bias = middle(a.means), middle(a.truths), middle(a.biases)
		result := fmt.Sprintf("%s: measured %.1f ns, the bias is %.1f, the truth %.1f; the error is %.1f", at.what, mean, bias, truth, middle(a.errors))
		t.Log(result)
		if math.Abs(middle(a.errors)) > at.tolerance*truth+ofBias*math.Abs(bias) {
			wrong = append(wrong, result)
		}
	}
	return wrong
}

// TestFiguresAreKept checks that figures are stored, and used only for the same machine,
// kernel and program. It tries several times, because the rough figures of a busy machine are
// not stored.
func TestFiguresAreKept(t *testing.T) {
	c := machine(t)
	var want program.Cost
	for try := 1; ; try++ {
		k := New(c)
		if err := k.Try(kernel.Name); err != nil {
			t.Fatal(err)
		}
		want = known(t, k, kernel.Name, kernel.Stepped)
		if _, err := os.Stat(c.File); err == nil {
			break
		}
		if try == 30 {
			t.Fatalf("nothing was stored in %d tries; the last figure is %+v", try, want)
		}
	}
	again := New(Config{File: c.File}) // without a node to calibrate
	again.Calibrate(kernel.Name)
	if got := known(t, again, kernel.Name, kernel.Stepped); got != want {
		t.Errorf("kept was %+v, want %+v", got, want)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"machine", "kernel", "build"} {
		other := strings.Replace(string(text), `"`+field+`": "`, `"`+field+`": "another `, 1)
		if err := os.WriteFile(c.File, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := New(c).Cost(kernel.Name, kernel.Stepped); ok {
			t.Errorf("figures of another %s are used", field)
		}
	}
}

// refusing is a placement that cannot place any program.
type refusing struct {
	program.Placer
	asked int
}

func (*refusing) Name() string { return "refusing" }

func (*refusing) Judge(list []program.Placing) ([]program.Verdict, []error) {
	return make([]program.Verdict, len(list)), make([]error, len(list))
}

func (r *refusing) NewStore(omis.ProcID, program.StoreKind) (program.Store, error) {
	r.asked++
	return nil, &program.Refusal{Why: "no capability"}
}

// TestCalibrationFails checks that a placement that cannot be calibrated is tried only
// once, and has no known costs.
func TestCalibrationFails(t *testing.T) {
	c := machine(t)
	r := &refusing{}
	c.Placers = append(c.Placers, r)
	k := New(c)
	if err := k.Try("refusing"); err == nil || !strings.Contains(err.Error(), "no capability") {
		t.Errorf("error %v", err)
	}
	asked := r.asked
	k.Calibrate("refusing")
	if asked == 0 || r.asked != asked {
		t.Errorf("asked %d times, and %d times after another try", asked, r.asked)
	}
	if _, ok := k.Cost("refusing", ""); ok {
		t.Error("the cost of a placement that refuses is known")
	}
	if err := k.Try("nowhere"); err == nil {
		t.Error("a placement that does not exist was calibrated")
	}
}

// TestCloseEndsCalibrating checks that Close does not wait for a calibration to finish.
func TestCloseEndsCalibrating(t *testing.T) {
	k := New(machine(t))
	done := make(chan error)
	go func() { done <- k.Try(kernel.Name) }()
	for standing := false; !standing; time.Sleep(time.Millisecond) {
		k.mu.RLock()
		standing = k.dummy != nil
		k.mu.RUnlock()
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("the calibration succeeded")
	}
	if err := k.Try(Held); err == nil {
		t.Error("a calibration ran after Close")
	}
}

// age makes a directory older than any that a monitor is about to lock.
func age(t *testing.T, folder string) {
	t.Helper()
	if err := os.Chtimes(folder, time.Time{}, time.Now().Add(-2*beginning)); err != nil {
		t.Fatal(err)
	}
}

// TestSweepSparesTheLiving checks that the directory of a live monitor remains, whatever
// its age, and also one that was just made.
func TestSweepSparesTheLiving(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var list []string
	for range 2 {
		folder, err := os.MkdirTemp("", folders)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, folder)
	}
	lock, err := lockFolder(list[0])
	if err != nil {
		t.Fatal(err)
	}
	age(t, list[0])
	sweep()
	for _, folder := range list {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
	lock.Close()
	sweep()
	if _, err := os.Stat(list[0]); err == nil {
		t.Error("the directory of a dead monitor remains")
	}
}

// TestDummyEndsWithItsMonitor checks that a dummy ends when its monitor is killed at any
// time, and that a later monitor removes its directory.
func TestDummyEndsWithItsMonitor(t *testing.T) {
	for _, wait := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond} {
		tmp := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run", "^TestCalibrate$")
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); len(running(tmp)) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			continue
		}
		time.Sleep(wait)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		for end := time.Now().Add(30 * time.Second); len(running(tmp)) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("killed after %v, it left the processes %v", wait, running(tmp))
			}
		}
		t.Setenv("TMPDIR", tmp)
		left, _ := filepath.Glob(filepath.Join(tmp, folders))
		for _, folder := range left {
			age(t, folder)
		}
		New(Config{})
		if left, _ := filepath.Glob(filepath.Join(tmp, folders)); len(left) > 0 {
			t.Errorf("%v remain", left)
		}
	}
}

// running lists the processes whose program is in a directory.
func running(folder string) (list []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, l := range links {
		if path, err := os.Readlink(l); err == nil && strings.HasPrefix(path, folder) {
			list = append(list, l)
		}
	}
	return list
}
