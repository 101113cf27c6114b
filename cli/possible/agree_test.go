//go:build linux && amd64

package possible_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"mirador/cli/possible"
	"mirador/examples/targets"
	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
	"mirador/sir"
	"mirador/sir/binary"
)

// asRegistrar is the argument by which the test binary becomes the process that sets uprobes.
const asRegistrar = "registrar"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asRegistrar {
		if err := registrar.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// placers makes the placers of each placement. Trap has none: there the monitor itself executes requests.
var placers = map[string][]rig.NewPlacer{
	inline.Name: {func(t testing.TB, n *linux.Node) program.Placer { return closed(t, inline.New(n)) }},
	kernel.Name: {func(t testing.TB, n *linux.Node) program.Placer {
		path, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p := kernel.New([]string{path, asRegistrar})
		p.DateBy(n.Now)
		p.CheckBy(n.Boundaries)
		return closed(t, p)
	}},
	omis.Trap: nil,
}

// closed closes a placer when the test ends.
func closed[P interface {
	program.Placer
	Close() error
}](t testing.TB, p P) P {
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// loaded is a file that a process has loaded.
type loaded struct {
	image *binary.Image
	bias  uint64
}

// place is a region of a process, and where it has probes.
type place struct {
	*sir.Region
	unit           string // the function
	entries, exits []uint64
	bias           uint64
}

// regions returns the regions of a file whose placements were judged, of one in some functions.
func (l *loaded) regions(t *testing.T, oneIn int) (all []place) {
	t.Helper()
	p := l.image.Functions()
	var chosen []sir.Region
	for i := 0; i < len(p.Regions); i += oneIn {
		chosen = append(chosen, p.Regions[i])
	}
	p.Regions = chosen
	p, err := l.image.WithInside(t.Context(), p)
	if err == nil {
		err = possible.New(landing.NewCatalog()).Find(t.Context(), l.image, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Regions {
		inside := sir.Program{Regions: p.Regions[i : i+1]}
		for r := range inside.All() {
			if r.Placements == nil || r.Placements.Uncounted != "" {
				continue
			}
			one := place{Region: r, unit: p.Regions[i].ID, bias: l.bias}
			if one.entries, err = l.image.Entries(r); err != nil {
				t.Fatal(err)
			}
			one.exits, _ = l.image.Exits(r) // without any it is not timed
			all = append(all, one)
		}
	}
	return all
}

// some returns at most n regions of each kind with the same refusals.
func some(all []place, n int) []place {
	classes := map[string][]place{}
	var order []string
	for _, p := range all {
		class := string(p.Kind)
		for _, r := range p.Placements.Refusals {
			class += "; " + r.Placement + " " + string(r.Of) + " " + withoutAddresses(r.Reason)
		}
		if classes[class] == nil {
			order = append(order, class)
		}
		classes[class] = append(classes[class], p)
	}
	var chosen []place
	for _, class := range order {
		list := classes[class]
		for i := range min(n, len(list)) {
			chosen = append(chosen, list[i*len(list)/min(n, len(list))])
		}
	}
	return chosen
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

func withoutAddresses(s string) string { return address.ReplaceAllString(s, "") }

// mostRounds bounds the regions of a function for which probes are enabled, not only explained.
const mostRounds = 3

// rounds divides regions such that no round has two regions of a function, whose probes would be in the way of each
// other.
func rounds(list []place) (divided [mostRounds][]*place) {
	next := map[string]int{}
	for i := range list {
		p := &list[i]
		if n := next[p.unit]; n < mostRounds {
			divided[n] = append(divided[n], p)
		}
		next[p.unit]++
	}
	return divided
}

// session is a monitor with one placement.
type session struct {
	*rig.Monitor
	placement string
}

// TestAgreesWithPlacements checks that what a document says of regions is what the engine does: regions are counted and
// timed in a running process by a monitor with one placement, or it says the same reason why they are not.
func TestAgreesWithPlacements(t *testing.T) {
	inC := subject.Start(t, exec.Command(targets.Build(t, "mmul"), "--wait", "2", "16"))
	if line := inC.Line(); !strings.HasPrefix(line, "ready") {
		t.Fatal(line)
	}
	t.Run("C", func(t *testing.T) {
		files := filesOf(t, inC.PID)
		var list []place
		for path, l := range files {
			switch name := filepath.Base(path); {
			case name == "mmul", name == "libmmul.so":
				list = append(list, l.regions(t, 1)...)
			case strings.HasPrefix(name, "libc.so"):
				list = append(list, some(l.regions(t, 5), 2)...)
			}
		}
		agree(t, inC.PID, list)
	})
	t.Run("Go", func(t *testing.T) {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "bin", "gofmt"))
		inGo := subject.Start(t, cmd)
		rig.Until(t, "gofmt reads", func() bool {
			state, err := proc.ThreadState(inGo.PID, inGo.PID)
			return err == nil && state == "S"
		})
		var list []place
		for _, l := range filesOf(t, inGo.PID) {
			list = append(list, some(l.regions(t, 20), 2)...)
		}
		agree(t, inGo.PID, list)
	})
}

// filesOf returns the files that a process has loaded, by their paths.
func filesOf(t *testing.T, pid int) map[string]*loaded {
	t.Helper()
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := proc.Modules(id)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*loaded{}
	for _, m := range modules {
		if !filepath.IsAbs(m.Path) {
			continue
		}
		image, err := binary.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		files[m.Path] = &loaded{image, m.Bias}
	}
	return files
}

// agree checks regions of a process in all placements.
func agree(t *testing.T, pid int, list []place) {
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(a.bias, b.bias) })
	t.Logf("%d regions", len(list))
	for _, placement := range []string{inline.Name, kernel.Name, omis.Trap} {
		t.Run(placement, func(t *testing.T) {
			s := &session{rig.OpenAll(t, linux.Config{Name: "here"}, placers[placement], &rig.Target{ID: id}), placement}
			s.Ask(": pa_counter_create() pa_timer_create()")
			if placement != omis.Trap { // the engine does not explain what cannot have a breakpoint
				for i := range list {
					s.compare(&list[i], s.explained)
				}
			}
			for _, round := range rounds(list) {
				s.round(round)
			}
		})
	}
}

// compare compares what the document says of a region with what happens.
func (s *session) compare(p *place, reason func(p *place, of sir.Measure) string) {
	s.T.Helper()
	counted := slices.Contains(p.Placements.Counted, s.placement)
	s.equal(p, sir.OfCount, counted, reason(p, sir.OfCount))
	if counted && len(p.exits) > 0 {
		s.equal(p, sir.OfTime, slices.Contains(p.Placements.Timed, s.placement), reason(p, sir.OfTime))
	}
}

// equal compares what the document says with the reason why the placement does not measure, "" if it does.
func (s *session) equal(p *place, of sir.Measure, possible bool, reason string) {
	s.T.Helper()
	i := slices.IndexFunc(p.Placements.Refusals, func(r sir.Refusal) bool { return r.Placement == s.placement && r.Of == of })
	switch {
	case possible != (i < 0):
		s.T.Errorf("%s: %s is said to be possible: %t, and refused: %t", p.ID, of, possible, i >= 0)
	case possible && reason != "":
		s.T.Errorf("%s: %s is said to be possible: %s", p.ID, of, reason)
	case !possible && reason == "":
		s.T.Errorf("%s: %s is possible, but is said to be refused: %+v", p.ID, of, p.Placements.Refusals[i])
	case !possible && !p.explains(reason):
		s.T.Errorf("%s: %s is refused: %s; said to be: %s", p.ID, of, reason, p.Placements.Refusals[i].Reason)
	}
}

// explains reports whether the document has the reason of a refusal. A request that cannot be executed in any placement
// gets the reason of the last one.
func (p *place) explains(reason string) bool {
	return slices.ContainsFunc(p.Placements.Refusals, func(r sir.Refusal) bool {
		return strings.Contains(withoutAddresses(reason), withoutAddresses(r.Reason))
	})
}

// requests returns the requests of a probe of the region.
func (p *place) requests(of sir.Measure, counter, timer omis.Token) (list []string) {
	begin := fmt.Sprintf("pa_counter_add([%s],1)", counter)
	if of == sir.OfTime {
		begin = fmt.Sprintf("%s pa_timer_start([%s])", begin, timer)
		for _, addr := range p.exits {
			list = append(list, fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([%s])", addr+p.bias, timer))
		}
	}
	for _, addr := range p.entries {
		list = append(list, fmt.Sprintf("thread_reached_addr([],%#x) : %s", addr+p.bias, begin))
	}
	return list
}

// explained returns the reasons that the engine gives when it is asked what it would do, "" if
// the placement is possible.
func (s *session) explained(p *place, of sir.Measure) string {
	s.T.Helper()
	list, err := s.Tool.Explain(nil, p.requests(of, "pa_c_1", "pa_t_1")...)
	if err != nil {
		return err.Error()
	}
	var reasons []string
	for _, x := range list {
		if x.Placement.Name != s.placement {
			reasons = append(reasons, x.Placement.Why)
		}
	}
	return strings.Join(reasons, "; ")
}

// round enables probes of regions, and compares what the document says with their placements.
func (s *session) round(list []*place) {
	s.T.Helper()
	for _, of := range []sir.Measure{sir.OfCount, sir.OfTime} {
		requests := map[*place][]omis.Token{}
		var all []omis.Token
		for _, p := range list {
			if of == sir.OfTime && (len(p.exits) == 0 || !slices.Contains(p.Placements.Counted, s.placement)) {
				continue
			}
			made := s.Ask(": pa_counter_create() pa_timer_create()")
			for _, request := range p.requests(of, made[1][0].Values[0].Token(), made[2][0].Values[0].Token()) {
				token := s.Ask("%s", request)[0][0].Values[0].Token()
				requests[p], all = append(requests[p], token), append(all, token)
			}
		}
		errs := s.enable(all)
		for p, tokens := range requests {
			possible := p.Placements.Counted
			if of == sir.OfTime {
				possible = p.Placements.Timed
			}
			s.equal(p, of, slices.Contains(possible, s.placement), s.refusal(tokens, errs))
		}
		s.Ask(": csr_delete([%s])", tokens(all))
	}
}

// refusal returns the reasons why requests are not executed in the placement, "" if all are.
func (s *session) refusal(requests []omis.Token, errs map[omis.Token]string) string {
	s.T.Helper()
	var reasons []string
	for _, request := range requests {
		x, err := s.Tool.State(request)
		switch why := errs[request]; {
		case err != nil:
			s.T.Fatal(err)
		case why != "":
			reasons = append(reasons, why)
		case x.Placement.Name != s.placement:
			reasons = append(reasons, x.Placement.Why)
		}
	}
	return strings.Join(reasons, "; ")
}

// enable enables requests and returns the reasons of refusals, by request.
func (s *session) enable(requests []omis.Token) map[omis.Token]string {
	s.T.Helper()
	reply, err := s.Tool.Request(context.Background(), fmt.Sprintf(": csr_enable([%s])", tokens(requests)), nil, 0)
	if err != nil {
		s.T.Fatal(err)
	}
	refused := map[omis.Token]string{}
	for _, results := range reply {
		for _, r := range results {
			if r.Status.IsError() && len(r.Objects) == 0 {
				s.T.Fatal(errors.New(r.Msg))
			}
			for _, o := range r.Objects {
				if r.Status.IsError() {
					refused[o] = r.Msg
				}
			}
		}
	}
	return refused
}

func tokens(list []omis.Token) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = string(t)
	}
	return strings.Join(words, ",")
}
