package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/cli/gate"
	gatehistory "mirador/cli/gate/history"
	"mirador/cli/gate/recorded"
	"mirador/cli/gate/report"
)

// gateStore are the flags of a gate with a history.
type gateStore struct {
	dir, commit          string
	labels               map[string]string
	noRecord, anyMachine bool
}

func (s *gateStore) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.dir, "store", "", "a directory that keeps the values of each commit; without --base head is compared with them")
	flags.StringVar(&s.commit, "commit", "", "the commit of head; by default that of the working tree")
	flags.StringToStringVar(&s.labels, "label", nil, "labels of the entry in --store, such as branch=main")
	flags.BoolVar(&s.noRecord, "no-record", false, "compare with --store, and add nothing to it")
	flags.BoolVar(&s.anyMachine, "any-machine", false, "compare also with values of other machines")
}

// compare makes a gate without a base compare with the history.
func (s *gateStore) compare(it *gate.Gate) error {
	entries, err := gatehistory.Read(s.dir)
	if err != nil {
		return err
	}
	machine := gatehistory.Fingerprint()
	if s.anyMachine {
		machine = ""
	}
	all, left := gatehistory.SeriesOf(entries, machine)
	if left > 0 && left == len(entries) && it.File.NeedsBase() {
		return fmt.Errorf("all %d entries of %s are of other machines, such as %q; this one is %q: compare on the same machine, or allow it by --any-machine", left, s.dir, entries[left-1].Machine, gatehistory.Fingerprint())
	}
	it.Stable = map[string][]float64{}
	for i := range all {
		it.Stable[all[i].Name] = all[i].Stable()
	}
	return nil
}

// record adds what was measured to the history.
func (s *gateStore) record(it *gate.Gate, rep *report.Report) error {
	if s.dir == "" || s.noRecord {
		return nil
	}
	text, err := os.ReadFile(it.Name)
	if err != nil {
		return err
	}
	file, err := readGate(it.Name)
	if err != nil {
		return err
	}
	file = file.Select(false)
	values := &recorded.Values{ByLimit: make([][]float64, len(file.Limits))}
	for i := range rep.Results {
		r := &rep.Results[i]
		values.ByLimit[r.Number] = r.HeadValues
	}
	commit := s.commit
	if commit == "" {
		commit = headCommit()
	}
	return gatehistory.Add(s.dir, gatehistory.About{Time: time.Now(), Commit: commit, Labels: s.labels, Machine: gatehistory.Fingerprint()}, text, file, values)
}

// headCommit returns the commit of the working tree, and says if that has changes.
func headCommit() string {
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(out))
	if changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(changes) > 0 {
		commit += "-dirty"
	}
	return commit
}

func newGateHistory(g *globals) *cobra.Command {
	var s gateStore
	var name, svg string
	cmd := &cobra.Command{
		Use:   "history --store DIR [flags]",
		Short: "Show how the values of a gate changed over time",
		Long: `Prints the values that "gate run --store" has kept, and the change points: where a value
became different for good, by E-divisive means with a t-test. Values of other machines are
left out.`,
		Example: "  mirador gate history --store perf --metric 'WC_TIME p50' --svg history.svg",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if s.dir == "" {
				return usagef("--store is needed: the directory that gate run --store fills")
			}
			entries, err := gatehistory.Read(s.dir)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				return fmt.Errorf("%s has no entries; gate run --store %s adds them", s.dir, s.dir)
			}
			machine := gatehistory.Fingerprint()
			if s.anyMachine {
				machine = ""
			}
			all, left := gatehistory.SeriesOf(entries, machine)
			all = slices.DeleteFunc(all, func(one gatehistory.Series) bool { return !strings.Contains(one.Name, name) })
			if left > 0 {
				fmt.Fprintf(g.streams.Err, "%d of %d entries are of other machines; --any-machine shows them\n", left, len(entries))
			}
			if err := gatehistory.WriteTable(forPeople(g.streams.Out), all, report.Amount); err != nil || svg == "" {
				return err
			}
			file, err := os.Create(svg)
			if err != nil {
				return fmt.Errorf("cannot draw the history: %w", err)
			}
			return errors.Join(gatehistory.WriteSVG(file, all, report.Amount), file.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.dir, "store", "", "the directory of gate run --store")
	flags.BoolVar(&s.anyMachine, "any-machine", false, "show also the values of other machines")
	flags.StringVar(&name, "metric", "", "only metrics whose names contain this")
	flags.StringVar(&svg, "svg", "", "draw the history into this file")
	return cmd
}
