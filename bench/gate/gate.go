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
	"syscall"

	"mirador/bench/report"
	gates "mirador/cli/gate/report"
	"mirador/cli/gate/verdict"
)

// Options say what to run.
type Options struct {
	Mirador  string // the program to measure
	Source   string // of the program that gates judge
	Runs     int    // real gates of each case
	Gates    int    // simulated gates of each case
	Seed     uint64
	Progress *report.Progress
}

// bench is a run of the section.
type bench struct {
	Options
	dir   string
	table *report.Table
}

// measured is what the real gates of a case said.
type measured struct {
	outcomes map[verdict.Outcome]int
	starts   []start
}

// start is a start of a duet, with the values of both programs.
type start struct{ base, head float64 }

// Run measures the goals.
func Run(ctx context.Context, o Options) (_ *report.Table, err error) {
	if o.Runs < 1 || o.Gates < 1 {
		return nil, errors.New("the numbers of gates must be greater than 0")
	}
	dir, err := os.MkdirTemp("", "mirador-bench-gate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{Options: o, dir: dir, table: &report.Table{Name: "gate", Title: "Verdicts of gates, in percent of the gates"}}
	for _, step := range []func(context.Context) error{b.same, b.slower, b.slightly, b.exact, b.layout} {
		if err = step(ctx); err != nil {
			break
		}
	}
	b.table.Note("Simulated: %d gates from the starts of %d real ones (-gates, -gate-runs), drawn with the seed %d. Simulations contain neither the check of the machine's bias nor that of moved code.", o.Gates, o.Runs, o.Seed)
	return b.table, err
}

// compile compiles the program with macros.
func (b *bench) compile(name string, macros ...string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "work")
	out, err := exec.Command("gcc", append([]string{"-g", "-O1", "-o", path, b.Source}, macros...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, nil
}

// duets runs real gates of base against head.
func (b *bench) duets(ctx context.Context, what string, limit float64, base, head []string) (m measured, err error) {
	m.outcomes = map[verdict.Outcome]int{}
	from, err := b.compile("base", base...)
	if err != nil {
		return m, err
	}
	to, err := b.compile("head", head...)
	if err != nil {
		return m, err
	}
	gate := fmt.Sprintf(`<codeRegion from="work:price"/><metric name="WC_TIME" g:max-change="%g%%"/>`, 100*limit)
	for n := range b.Runs {
		b.Progress.Say("%s: gate %d of %d", what, n+1, b.Runs)
		rep, err := b.judge(ctx, gate, "--base", from+" 1 stay", "--head", to+" 1 stay")
		if err != nil {
			return m, err
		}
		r := rep.Results[0]
		m.outcomes[r.Outcome]++
		for i := range r.BaseValues {
			m.starts = append(m.starts, start{r.BaseValues[i], r.HeadValues[i]})
		}
	}
	return m, nil
}

// judge runs a gate.
func (b *bench) judge(ctx context.Context, requests string, args ...string) (*gates.Report, error) {
	file := filepath.Join(b.dir, "gate.xml")
	if err := os.WriteFile(file, []byte(`<g:gate xmlns:g="urn:mirador:gate"><instrreq>`+requests+`</instrreq></g:gate>`), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.Mirador, append([]string{"gate", "run", "-f", file, "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=", "GITHUB_STEP_SUMMARY=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	rep := &gates.Report{}
	if json.Unmarshal(out, rep) != nil || len(rep.Results) == 0 {
		return nil, fmt.Errorf("the gate gave no verdict: %w", err)
	}
	return rep, ctx.Err()
}

// share adds a row: the share of gates with an outcome.
func (b *bench) share(what string, part float64, goal report.Goal) {
	b.table.Add(report.Row{What: what, Unit: report.Percent, Ours: report.Stat{Least: 100 * part, Median: 100 * part}, Goal: goal})
}

// real adds a row with what the real gates said.
func (b *bench) real(what string, m measured, o verdict.Outcome, goal report.Goal) {
	b.share(fmt.Sprintf("%s (%d real)", what, b.Runs), float64(m.outcomes[o])/float64(b.Runs), goal)
}

// same compares a program with itself, first beside a busy loop, which the kernel moves between
// processors.
func (b *bench) same(ctx context.Context) error {
	path, err := b.compile("neighbour")
	if err != nil {
		return err
	}
	neighbour := exec.Command(path, "1", "stay")
	neighbour.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := neighbour.Start(); err != nil {
		return err
	}
	busy, err := b.duets(ctx, "no change, with a neighbour", 0.03, nil, nil)
	_ = neighbour.Process.Kill() // it has not been waited for
	_ = neighbour.Wait()         // the status is that of the signal
	if err != nil {
		return err
	}
	quiet, err := b.duets(ctx, "no change", 0.03, nil, nil)
	if err != nil {
		return err
	}
	b.real("false alarms beside a neighbour", busy, verdict.Failed, report.AtMost(1))
	b.share("false alarms beside a neighbour (simulated)", b.simulate(busy.starts, 0.03, 0)[verdict.Failed], report.AtMost(1))
	b.real("inconclusive without a neighbour", quiet, verdict.Inconclusive, report.AtMost(5))
	b.share("inconclusive without a neighbour (simulated)", b.simulate(quiet.starts, 0.03, 0)[verdict.Inconclusive], report.AtMost(5))
	b.others(busy.starts)
	return nil
}

// slower finds a slowdown of five percent.
func (b *bench) slower(ctx context.Context) error {
	m, err := b.duets(ctx, "a slowdown of 5 %", 0.03, []string{"-DROUNDS=1000"}, []string{"-DROUNDS=1050"})
	if err != nil {
		return err
	}
	b.real("a slowdown of 5 %, found", m, verdict.Failed, report.AtLeast(95))
	b.share("a slowdown of 5 %, found (simulated)", b.simulate(m.starts, 0.03, 0)[verdict.Failed], report.AtLeast(95))
	return nil
}

// slightly finds a slowdown of two percent, with a limit of one.
func (b *bench) slightly(ctx context.Context) error {
	m, err := b.duets(ctx, "a slowdown of 2 %", 0.01, []string{"-DROUNDS=1000"}, []string{"-DROUNDS=1020"})
	if err != nil {
		return err
	}
	b.real("a slowdown of 2 %, found", m, verdict.Failed, report.AtLeast(90))
	b.share("a slowdown of 2 %, found (simulated)", b.simulate(m.starts, 0.01, 0)[verdict.Failed], report.AtLeast(90))
	return nil
}

// exactGates is the number of gates on counts that run for each other gate, because they are short.
const exactGates = 10

// exact finds one more call in a million.
func (b *bench) exact(ctx context.Context) error {
	path, err := b.compile("head", "-DEXTRA=1")
	if err != nil {
		return err
	}
	found, all := 0, exactGates*b.Runs
	for n := range all {
		b.Progress.Say("one more call in a million: gate %d of %d", n+1, all)
		rep, err := b.judge(ctx, `<codeRegion from="work:price"/><metric name="COUNT" g:exact="1000000"/>`, "--head", path+" 1000000")
		if err != nil {
			return err
		}
		if rep.Outcome == verdict.Failed {
			found++
		}
	}
	b.share(fmt.Sprintf("one more call in 10^6, found (%d real)", all), float64(found)/float64(all), report.AtLeast(100))
	return nil
}

// layout moves the code by numbers of nops, which are no multiples of a cache line.
func (b *bench) layout(ctx context.Context) error {
	failed, all := 0, 0
	for _, pad := range []string{"-DPAD=16", "-DPAD=40"} {
		m, err := b.duets(ctx, "moved code", 0.03, nil, []string{pad})
		if err != nil {
			return err
		}
		failed, all = failed+m.outcomes[verdict.Failed], all+b.Runs
	}
	b.share(fmt.Sprintf("moved code reported as a failure (%d real)", all), float64(failed)/float64(all), report.AtMost(2))
	return nil
}

// logarithms returns the ratios of starts.
func logarithms(starts []start) (ratios []float64) {
	for _, s := range starts {
		ratios = append(ratios, math.Log(s.head/s.base))
	}
	return ratios
}
