//go:build linux && amd64

package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/cpu"

	"mirador/omis"
	"mirador/omis/monitor"
)

// Plan is the configuration of a run.
type Plan struct {
	Warden   []string // the command of a warden
	Ways     []string // elements of Ways
	Places   int      // number of places to plant in all
	Time     time.Duration
	Seed     uint64
	Progress io.Writer
}

// A victim has this many functions, and a round calls each this often. A pass plants one place in
// stride, so that there is space for jumps into generated code.
const (
	shapes = 9
	calls  = 6
	stride = 4
)

// Outcome is the result of one way to reach a place, an element of Ways.
type Outcome struct {
	Way     string
	Victims int
	Rounds  int
	Planted map[string]int // by placement
	Counted int64          // executions that probes have counted correctly
	Refused map[string]int // by reason
	Wrong   []error
}

// Run sweeps in one way after the other, each for its share of the time, because two monitors in
// one process would wait for each other's threads. The error is about what could not be done; wrong
// results are in the outcomes.
func (p Plan) Run(ctx context.Context) (outcomes []*Outcome, err error) {
	dir, err := os.MkdirTemp("", "mirador-sweep-")
	if err != nil {
		return nil, err
	}
	b, err := newBuilder(dir)
	if err != nil {
		return nil, err
	}
	for i, way := range p.Ways {
		o := &Outcome{Way: way, Planted: map[string]int{}, Refused: map[string]int{}}
		outcomes = append(outcomes, o)
		s := &sweeper{Outcome: o, builder: b, plan: p, share: p.Places / len(p.Ways), seed: p.Seed*1000 + uint64(i)*100_000_000, told: time.Now()}
		within, cancel := context.WithTimeout(ctx, p.Time/time.Duration(len(p.Ways)))
		err = errors.Join(err, s.run(within))
		cancel()
	}
	wrong := func(o *Outcome) bool { return len(o.Wrong) > 0 }
	if err == nil && !slices.ContainsFunc(outcomes, wrong) {
		return outcomes, os.RemoveAll(dir)
	}
	fmt.Fprintln(p.Progress, "the programs are in", dir)
	return outcomes, err
}

// sweeper sweeps in one way.
type sweeper struct {
	*Outcome
	*builder
	plan    Plan
	share   int    // number of places to plant
	seed    uint64 // seed of the next victim
	monitor *monitor.Monitor
	told    time.Time // time of the last progress report
}

func (s *sweeper) run(ctx context.Context) (err error) {
	if s.monitor, err = openMonitor(s.Way, s.plan.Warden); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.monitor.Close(context.WithoutCancel(ctx))) }()
	for s.total() < s.share && ctx.Err() == nil {
		s.seed++
		if err := s.victim(ctx); err != nil {
			err = fmt.Errorf("%s, seed %d: %w", s.Way, s.seed, err)
			fmt.Fprintln(s.plan.Progress, "wrong:", err)
			s.Wrong = append(s.Wrong, err)
			if len(s.Wrong) >= 10 {
				return nil
			}
		}
		s.tell()
	}
	return nil
}

// tell prints the progress from time to time.
func (s *sweeper) tell() {
	if time.Since(s.told) > 10*time.Second {
		s.told = time.Now()
		fmt.Fprintf(s.plan.Progress, "%s: %d programs, %d places, %d wrong\n", s.Way, s.Victims, s.total(), len(s.Wrong))
	}
}

func (s *sweeper) total() (n int) {
	for _, k := range s.Planted {
		n += k
	}
	return n
}

// victim sweeps one program.
func (s *sweeper) victim(ctx context.Context) error {
	name := fmt.Sprintf("%s-%d", s.Way, s.seed)
	v, err := s.start(generate(s.seed, shapes, cpu.X86.HasAVX2), name)
	if err != nil {
		return err
	}
	defer v.Kill()
	s.Victims++
	r := s.session(v, "")
	chosen, err := r.run(ctx)
	if err != nil {
		return s.findWrong(chosen, errors.Join(err, r.t.Finalize()))
	}
	if gone := r.t.Finalize(); err == nil {
		err = gone
	}
	if err == nil {
		err = v.unchanged()
	}
	if err == nil {
		os.Remove(v.Cmd.Path)
		os.Remove(v.Cmd.Path + ".s")
	}
	return err
}

// unchanged checks that a victim has its original code and results.
func (v *victim) unchanged() error {
	text, err := v.code()
	if err != nil {
		return err
	}
	if !bytes.Equal(text, v.text) {
		return errors.New("the code of the program has changed")
	}
	after, err := v.round()
	if i := different(after, v.calm); err == nil && i >= 0 {
		err = fmt.Errorf("shape_%d returns another result after the removal of all probes", i)
	}
	return err
}

// session is the test of one victim.
type session struct {
	*sweeper
	v      *victim
	t      tool
	random *rand.Rand

	requests     []omis.Token // by place
	counted      []bool       // by place: the request counts
	sure, unsure omis.Token   // counters of places whose number of executions is known, and unknown
}

func (s *sweeper) session(v *victim, name string) *session {
	t := tool{s.monitor.Engine.Tool(fmt.Sprint(s.Way, s.seed, name))}
	return &session{sweeper: s, v: v, t: t, random: rand.New(rand.NewPCG(s.seed, 1))}
}

func (r *session) attach() error {
	if _, err := r.t.ask(`: proc_attach3([],%d,"")`, r.v.PID); err != nil {
		return err
	}
	return r.define()
}

// run plants every place once. If a pass fails, run returns its places.
func (r *session) run(ctx context.Context) (chosen []int, err error) {
	if err := r.attach(); err != nil {
		return nil, err
	}
	for i, first := range r.random.Perm(stride) {
		if ctx.Err() != nil {
			return nil, nil
		}
		chosen = nil
		for p := first; p < len(r.requests); p += stride {
			chosen = append(chosen, p)
		}
		if err := r.pass(chosen, i%2 == 1); err != nil {
			return chosen, err
		}
	}
	return nil, nil
}

// define defines a request for each place: three in four count, the others begin and end intervals.
func (r *session) define() error {
	var objects [3]omis.Token
	for i, make := range []string{"pa_counter_create()", "pa_counter_create()", "pa_timer_create()"} {
		values, err := r.t.ask(": %s", make)
		if err != nil {
			return err
		}
		objects[i] = values[0].Token()
	}
	r.sure, r.unsure = objects[0], objects[1]
	for i, p := range r.v.places {
		counted := r.random.IntN(4) > 0
		action := ""
		switch {
		case counted && p.times >= 0:
			action = fmt.Sprintf("pa_counter_add([%s],1)", r.sure)
		case counted:
			action = fmt.Sprintf("pa_counter_add([%s],1)", r.unsure)
		case r.random.IntN(2) == 0:
			action = fmt.Sprintf("pa_timer_start([%s])", objects[2])
		default:
			action = fmt.Sprintf("pa_timer_stop([%s])", objects[2])
		}
		request, err := r.t.define(r.v.addrs[i], action)
		if err != nil {
			return err
		}
		r.requests, r.counted = append(r.requests, request), append(r.counted, counted)
	}
	return nil
}

// pass plants probes, makes the victim execute them, and removes them. In a busy pass another
// thread executes the functions all the time, so the counts cannot be compared.
func (r *session) pass(chosen []int, busy bool) error {
	if busy {
		if _, err := r.v.tell("busy"); err != nil {
			return err
		}
	}
	if _, err := r.t.count(r.sure); err != nil { // discards the count of a busy pass
		return err
	}
	var requests []omis.Token
	for _, p := range chosen {
		requests = append(requests, r.requests[p])
	}
	refused, err := r.t.enable(requests)
	if err != nil {
		return err
	}
	for _, why := range refused {
		r.Refused[why]++
	}
	err = r.check(chosen, refused, busy)
	if err == nil {
		err = r.t.disable(requests)
	}
	if err == nil && busy {
		_, err = r.v.tell("rest")
	}
	return err
}

// check makes the victim execute the probes, and compares results and counts.
func (r *session) check(chosen []int, refused map[omis.Token]string, busy bool) error {
	for _, p := range chosen {
		if _, isRefused := refused[r.requests[p]]; isRefused {
			continue
		}
		x, err := r.t.State(r.requests[p])
		if err != nil {
			return err
		}
		r.Planted[strings.TrimSuffix(x.Placement.Name+" "+x.Placement.Kind, " ")]++
	}
	got, err := r.v.round()
	if err != nil {
		return err
	}
	r.Rounds++
	if i := different(got, r.v.calm); i >= 0 {
		return fmt.Errorf("shape_%d returns %s, want %s", i, got[i], r.v.calm[i])
	}
	n, err := r.t.count(r.sure)
	if err != nil || busy {
		return err
	}
	want := int64(0)
	for _, p := range chosen {
		if _, isRefused := refused[r.requests[p]]; !isRefused && r.counted[p] && r.v.places[p].times >= 0 {
			want += int64(calls * r.v.places[p].times)
		}
	}
	if n != want {
		return fmt.Errorf("%d executions are counted, want %d", n, want)
	}
	r.Counted += n
	return nil
}

// findWrong plants the places of a failed pass one by one in another victim, to find a place that
// fails alone.
func (s *sweeper) findWrong(chosen []int, failed error) error {
	v, err := s.start(generate(s.seed, shapes, cpu.X86.HasAVX2), fmt.Sprintf("%s-%d-again", s.Way, s.seed))
	if err != nil {
		return errors.Join(failed, err)
	}
	defer v.Kill()
	r := s.session(v, "again")
	err = r.attach()
	for _, p := range chosen {
		if err != nil {
			break
		}
		if err = r.pass([]int{p}, false); err != nil {
			place := v.places[p]
			err = fmt.Errorf("the probe at %q alone (instruction %d, %#x, of shape_%d): %w", place.text, p, v.addrs[p], place.shape, err)
		}
	}
	return errors.Join(failed, err, r.t.Finalize())
}

// Print writes a table of outcomes.
func Print(w io.Writer, all []*Outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tprograms\trounds\tplaces\tcounted\trefused\twrong\t")
	for _, o := range all {
		refused, places := 0, 0
		for _, n := range o.Refused {
			refused += n
		}
		for _, n := range o.Planted {
			places += n
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", o.Way, o.Victims, o.Rounds, places, o.Counted, refused, len(o.Wrong))
	}
	t.Flush() // returns only errors of the writer
	for _, o := range all {
		for _, name := range slices.Sorted(maps.Keys(o.Planted)) {
			fmt.Fprintf(w, "%s: %d places in %s\n", o.Way, o.Planted[name], name)
		}
		for _, why := range slices.Sorted(maps.Keys(o.Refused)) {
			fmt.Fprintf(w, "%s, refused %d times: %s\n", o.Way, o.Refused[why], why)
		}
		for _, err := range o.Wrong {
			fmt.Fprintf(w, "WRONG: %v\n", err)
		}
	}
}
