// Package gate measures the verdicts of performance gates: how often they fail without a change, and
// how often they find one. It runs real gates on programs that it compiles, and simulates many gates
// from the starts that these recorded. Only bench imports it.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/bench/report"
	gates "mirador/cli/gate/report"
	"mirador/cli/gate/verdict"
)

// Options say what to run.
type Options struct {
	Mirador  string        // the program to measure
	Source   string        // of the program that gates judge
	Runs     int           // real gates of each case, at most
	Time     time.Duration // for all real gates; the gate that runs then ends
	Gates    int           // simulated gates of each case
	Seed     uint64
	Progress *report.Progress
}

// bench is a run of the section.
type bench struct {
	Options
	dir   string
	table *report.Table
}

// trial is a case: gates on two builds of the program.
type trial struct {
	what       string
	requests   string  // of the gate
	limit      float64 // 0: the gate has no limit on the change of a time
	base, head []string
	arguments  string // of the program
	neighbour  bool   // a busy loop runs beside
	each       int    // gates in each cycle of all cases; some are short

	runs     int
	broken   int // gates that gave no verdict
	outcomes map[verdict.Outcome]int
	starts   []start
	longest  float64 // seconds of a gate
}

// start is a start of a duet, with the values of both programs, and the change that their turns show.
type start struct{ base, head, change float64 }

// The cases, with the macros and flags of the compiler for both builds.
var (
	slow5, slow2  = []string{"-DROUNDS=1050"}, []string{"-DROUNDS=1020"}
	usual, byName = []string{"-DROUNDS=1000"}, []string{"-ffunction-sections", "-Wl,--sort-section=name"}
)

const (
	ofTime  = `<codeRegion from="work:price"/><metric name="WC_TIME" g:max-change="%g%%"/>`
	ofCalls = `<codeRegion from="work:price"/><metric name="COUNT" g:exact="1000000"/>`
)

// duet returns a case in which a time is compared.
func duet(what string, limit float64, base, head []string) *trial {
	return &trial{what: what, requests: fmt.Sprintf(ofTime, 100*limit), limit: limit, base: base, head: head, arguments: " 1 stay", each: 1}
}

// Run measures the goals. The cases take turns, so that each has been tried equally often when the
// time is over.
func Run(ctx context.Context, o Options) (_ *report.Table, err error) {
	if o.Runs < 1 || o.Gates < 1 || o.Time <= 0 {
		return nil, errors.New("the numbers of gates and their time must be greater than 0")
	}
	dir, err := os.MkdirTemp("", "mirador-bench-gate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{Options: o, dir: dir, table: &report.Table{Name: "gate", Title: "Verdicts of gates, in percent of the gates"}}
	busy, quiet := duet("no change, beside a neighbour", 0.03, usual, usual), duet("no change", 0.03, usual, usual)
	busy.neighbour = true
	five, two := duet("a slowdown of 5 %", 0.03, usual, slow5), duet("a slowdown of 2 %", 0.01, usual, slow2)
	more := &trial{what: "one more call in 10^6", requests: ofCalls, head: []string{"-DEXTRA=1"}, arguments: " 1000000", each: 5}
	moved := []*trial{
		duet("code moved by 16 nops", 0.03, nil, []string{"-DPAD=16"}),
		duet("code moved by 40 nops", 0.03, nil, []string{"-DPAD=40"}),
		duet("code linked in another order", 0.03, nil, byName),
	}
	if err := b.cycle(ctx, append([]*trial{busy, quiet, five, two, more}, moved...)); err != nil {
		return b.table, err
	}
	b.rows(busy, verdict.Failed, "false alarms beside a neighbour", report.AtMost(1))
	b.rows(quiet, verdict.Inconclusive, "inconclusive without a neighbour", report.AtMost(5))
	b.rows(five, verdict.Failed, "a slowdown of 5 %, found", report.AtLeast(95))
	b.duration(five, 60*time.Second)
	b.rows(two, verdict.Failed, "a slowdown of 2 %, found", report.AtLeast(90))
	b.duration(two, 5*time.Minute)
	b.real("one more call in 10^6, found", verdict.Failed, report.AtLeast(100), more)
	b.real("moved code reported as a failure", verdict.Failed, report.AtMost(2), moved...)
	b.others(append(busy.starts, quiet.starts...))
	b.table.Note("Real gates took %v at most (-gate-time), %d of each case at most (-gate-runs). Simulated: %d gates from their starts (-gates), drawn with the seed %d (-gate-seed). Simulations contain neither the check of the machine's bias nor that of moved code.", o.Time, o.Runs, o.Gates, o.Seed)
	return b.table, ctx.Err()
}

// mostBroken is the number of gates of a case that may fail to run.
const mostBroken = 3

// cycle runs gates of all cases by turns, until the time is over or enough have run. The first cycle is whole.
func (b *bench) cycle(ctx context.Context, trials []*trial) error {
	end := time.Now().Add(b.Time)
	for n := range b.Runs {
		for _, t := range trials {
			for range t.each {
				if n > 0 && time.Now().After(end) {
					return nil
				}
				b.Progress.Say("%s: gate %d of %d, %v left", t.what, t.runs+1, t.each*b.Runs, max(time.Until(end), 0).Round(time.Second))
				err := b.run(ctx, t)
				if err == nil {
					continue
				}
				if t.broken++; t.broken == mostBroken || ctx.Err() != nil {
					return fmt.Errorf("%s: %w", t.what, err)
				}
				b.table.Note("A gate could not run: %s: %v", t.what, err)
			}
		}
	}
	return nil
}

// run runs a real gate.
func (b *bench) run(ctx context.Context, t *trial) error {
	head, err := b.compile("head", t.head...)
	if err != nil {
		return err
	}
	args := []string{"--head", head + t.arguments}
	if t.limit > 0 {
		base, err := b.compile("base", t.base...)
		if err != nil {
			return err
		}
		args = append(args, "--base", base+t.arguments)
	}
	if t.neighbour {
		neighbour := exec.Command(head, "1", "stay")
		neighbour.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := neighbour.Start(); err != nil {
			return err
		}
		defer func() {
			_ = neighbour.Process.Kill() // it has not been waited for
			_ = neighbour.Wait()         // the status is that of the signal
		}()
	}
	rep, err := b.judge(ctx, t.requests, args...)
	if err != nil {
		return err
	}
	t.add(rep)
	return nil
}

// add adds the verdict of a gate.
func (t *trial) add(rep *gates.Report) {
	if t.outcomes == nil {
		t.outcomes = map[verdict.Outcome]int{}
	}
	r := &rep.Results[0]
	t.runs++
	t.outcomes[r.Outcome]++
	t.longest = max(t.longest, rep.Seconds)
	if t.limit > 0 {
		for i := range r.BaseValues {
			t.starts = append(t.starts, start{r.BaseValues[i], r.HeadValues[i], r.Changes[i]})
		}
	}
}

// compile compiles the program with macros and flags.
func (b *bench) compile(name string, flags ...string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "work")
	_ = os.Remove(path) // of the gate before, if any; a neighbour may execute it still
	out, err := exec.Command("gcc", append([]string{"-g", "-O1", "-o", path, b.Source}, flags...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, nil
}

// judge runs a gate.
func (b *bench) judge(ctx context.Context, requests string, args ...string) (*gates.Report, error) {
	file := filepath.Join(b.dir, "gate.xml")
	if err := os.WriteFile(file, []byte(`<g:gate xmlns:g="urn:mirador:gate"><instrreq>`+requests+`</instrreq></g:gate>`), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.Mirador, append([]string{"gate", "run", "-f", file, "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=", "GITHUB_STEP_SUMMARY=", "GITHUB_ACTIONS=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	rep := &gates.Report{}
	if json.Unmarshal(out, rep) != nil || len(rep.Results) == 0 {
		return nil, fmt.Errorf("the gate gave no verdict: %w: %s", err, &errs)
	}
	return rep, ctx.Err()
}

// share adds a row: the share of gates with an outcome.
func (b *bench) share(what string, part float64, goal report.Goal) {
	b.table.Add(report.Row{What: what, Unit: report.Percent, Ours: report.Stat{Least: 100 * part, Median: 100 * part}, Goal: goal})
}

// real adds a row with what the real gates of some cases said.
func (b *bench) real(what string, o verdict.Outcome, goal report.Goal, trials ...*trial) {
	found, all := 0, 0
	for _, t := range trials {
		found, all = found+t.outcomes[o], all+t.runs
	}
	b.share(fmt.Sprintf("%s (%d real)", what, all), float64(found)/float64(all), goal)
}

// rows adds what the real gates of a case said, and what gates say that are simulated from their starts.
func (b *bench) rows(t *trial, o verdict.Outcome, what string, goal report.Goal) {
	b.real(what, o, goal, t)
	b.share(fmt.Sprintf("%s (simulated from %d starts)", what, len(t.starts)), b.simulate(t.starts, t.limit, 0)[o], goal)
}

// duration adds a row: how long a gate of a case took at most.
func (b *bench) duration(t *trial, most time.Duration) {
	ns := t.longest * 1e9
	b.table.Add(report.Row{What: t.what + ", time of the longest gate", Unit: report.Nanoseconds, Ours: report.Stat{Least: ns, Median: ns}, Goal: report.AtMost(float64(most))})
}

// logarithms returns the ratios of starts.
func logarithms(starts []start) (ratios []float64) {
	for _, s := range starts {
		ratios = append(ratios, math.Log1p(s.change))
	}
	return ratios
}
