//go:build linux && amd64

// Package shares measures the share of the functions of real programs that code in the
// program can count, and collects the reasons for the others.
//
// Only bench imports it.
package shares

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
	"mirador/sir/binary"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// Options configure Run.
type Options struct {
	Mirador  string   // the measured server in Go
	Warden   []string // the command of a warden
	Progress *report.Progress
}

// Run judges all functions of some programs.
func Run(ctx context.Context, o Options) (t *report.Table, err error) {
	t = &report.Table{Name: "shares", Title: "Functions that can be counted by code in the program"}
	n, err := linux.Open(linux.Config{Name: "shares", Warden: o.Warden})
	if err != nil {
		return nil, err
	}
	placer := inline.New(n)
	defer func() { err = errors.Join(err, placer.Close(), n.Close(context.WithoutCancel(ctx))) }()
	for _, p := range programs(o.Mirador) {
		o.Progress.Say("shares: %s", p.name)
		s, err := p.judge(ctx, n, placer)
		if why, missing := subject.WhyMissing(err); missing {
			t.Add(report.Row{What: p.name, Unit: report.Percent, Goal: report.AtLeast(p.goal), Why: why})
			continue
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", p.name, err)
		}
		s.add(t, p)
	}
	return t, nil
}

// share counts the functions of a program.
type share struct {
	all, inline, timed int                 // inline: can be counted in their code; timed: at all their exits, too
	refused            map[string][]string // names of functions that cannot be counted, by reason
	untimed            map[string][]string // names of functions that can be counted, but not at each exit, by reason
}

// judge starts a program, and asks the placement about each of its functions.
func (p sample) judge(ctx context.Context, n *linux.Node, placer *inline.Placer) (s *share, err error) {
	r, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	id, err := proc.Identify(r.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	places, s, err := functions(n, id, r.path)
	if err != nil {
		return nil, err
	}
	s.judge(places, placer)
	return s, nil
}

// place is a function with the address where it is counted and its exits.
type place struct {
	function string
	program.Placing
	exits []program.Placing
}

func (s *share) judge(places []place, placer *inline.Placer) {
	var list []program.Placing
	for _, p := range places {
		list = append(append(list, p.Placing), p.exits...)
	}
	_, errs := placer.Judge(list)
	for _, p := range places {
		mine := errs[:1+len(p.exits)]
		errs = errs[len(mine):]
		if mine[0] != nil {
			why := reason(mine[0])
			s.refused[why] = append(s.refused[why], p.function)
			continue
		}
		s.inline++
		if err := firstOf(mine[1:]); err != nil {
			why := reason(err)
			s.untimed[why] = append(s.untimed[why], p.function)
			continue
		}
		s.timed++
	}
}

// functions returns the functions of a file with their places. It records functions
// without a known place as refused.
func functions(n *linux.Node, id omis.ProcID, path string) (list []place, s *share, err error) {
	modules, err := n.Modules(id)
	if err != nil {
		return nil, nil, err
	}
	module := slices.IndexFunc(modules, func(m node.Module) bool { return m.Path == path })
	if module < 0 {
		return nil, nil, fmt.Errorf("%s is not loaded", path)
	}
	image, err := binary.NewCache(binary.DefaultCacheBytes, nil).OpenAs(path, "", binary.FromProcess(id.PID))
	if err != nil {
		return nil, nil, err
	}
	s = &share{refused: make(map[string][]string), untimed: make(map[string][]string)}
	at := func(addr uint64) program.Placing {
		watch := node.Watch{Event: node.EventReachedAddr, Proc: id, Addr: addr + modules[module].Bias}
		return program.Placing{Watch: watch, Program: program.Program{{Do: program.OpAdd, Value: 1}}}
	}
	for _, unit := range image.Functions().Regions {
		if unit.Entry == 0 {
			continue
		}
		s.all++
		entries, err := image.Entries(&unit)
		if err != nil {
			s.refused["where it is entered is not known"] = append(s.refused["where it is entered is not known"], unit.Name)
			continue
		}
		p := place{function: unit.Name, Placing: at(entries[0])}
		exits, err := image.Exits(&unit)
		if err != nil {
			s.untimed["where it is left is not known"] = append(s.untimed["where it is left is not known"], unit.Name)
		}
		for _, exit := range exits {
			p.exits = append(p.exits, at(exit))
		}
		list = append(list, p)
	}
	return list, s, nil
}

var (
	address = regexp.MustCompile(`0x[0-9a-f]+`)
	opening = regexp.MustCompile(`^no code can be put at [^:]*: `)
)

// reason returns a refusal without the parts that differ between functions.
func reason(err error) string {
	return address.ReplaceAllString(opening.ReplaceAllString(err.Error(), ""), "…")
}

// add adds rows, and notes with the reasons why functions are missing from them.
func (s *share) add(t *report.Table, p sample) {
	row := func(what string, n int, goal report.Goal) {
		part := s.percent(n)
		t.Add(report.Row{What: what, Unit: report.Percent, Ours: report.Stat{Least: part, Median: part}, Goal: goal})
	}
	row(fmt.Sprintf("%s, counted, of %d functions", p.name, s.all), s.inline, report.AtLeast(p.goal))
	row(fmt.Sprintf("%s, at each exit, too", p.name), s.timed, report.Goal{})
	s.note(t, p.name+", not counted", s.refused)
	s.note(t, p.name+", not at each exit", s.untimed)
}

func (s *share) percent(n int) float64 { return 100 * float64(n) / float64(max(1, s.all)) }

// note adds a note for each reason, the most frequent first.
func (s *share) note(t *report.Table, what string, refused map[string][]string) {
	const named = 3
	reasons := slices.SortedFunc(maps.Keys(refused), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(refused[b]), len(refused[a])), cmp.Compare(a, b))
	})
	for _, why := range reasons {
		of := refused[why]
		t.Note("%s: %d (%.2f %%), for instance %s: %s.", what, len(of), s.percent(len(of)), strings.Join(of[:min(named, len(of))], ", "), why)
	}
}

func firstOf(errs []error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}
