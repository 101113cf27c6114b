//go:build linux && amd64

package rig

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/program"
)

// Monitor is a monitor without a gateway, attached to a target.
type Monitor struct {
	Target  *Target
	Tool    *engine.Tool
	CSRs    []string // tokens of all conditional requests
	Regions []string // names of the measured functions and calls, in the order of their counters and timers
	OneIn   int      // number of intervals for each one that is timed; 0: all are timed
	Spread  bool     // timers keep histograms

	T testing.TB
}

// NewPlacer makes a placement for a node.
type NewPlacer func(testing.TB, *linux.Node) program.Placer

// Open starts a monitor with a node of its own and at most one placement besides trap, and
// attaches it to a target.
func Open(t testing.TB, c linux.Config, placer NewPlacer, g *Target) *Monitor {
	t.Helper()
	if placer == nil {
		return OpenAll(t, c, nil, g)
	}
	return OpenAll(t, c, []NewPlacer{placer}, g)
}

// OpenAll does the same with any number of placements, cheapest first.
func OpenAll(t testing.TB, c linux.Config, placers []NewPlacer, g *Target) *Monitor {
	t.Helper()
	m, err := monitor.Open(monitor.Config{Linux: c, Placers: func(n *linux.Node) (all []program.Placer) {
		for _, placer := range placers {
			all = append(all, placer(t, n))
		}
		return all
	}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := &Monitor{T: t, Tool: m.Engine.Tool("test"), Target: g}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	r.Ask(`: proc_attach3([],%d,"")`, g.ID.PID)
	return r
}

// Ask sends a request and fails the test if the request fails.
func (r *Monitor) Ask(format string, args ...any) omis.Reply {
	r.T.Helper()
	request := fmt.Sprintf(format, args...)
	reply, err := r.Tool.Request(context.Background(), request, nil, 0)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		r.T.Fatalf("%s: %v", request, err)
	}
	return reply
}

// Define defines a conditional request.
func (r *Monitor) Define(format string, args ...any) {
	r.T.Helper()
	reply := r.Ask(format, args...)
	r.CSRs = append(r.CSRs, string(reply[0][0].Values[0].Token()))
}

// Region counts and times a function, for some threads or all of them ("[]").
func (r *Monitor) Region(function, threads string) {
	r.T.Helper()
	r.RegionBy("ordered", function, threads)
}

// RegionBy counts and times a function by a clock.
func (r *Monitor) RegionBy(clock, function, threads string) {
	r.T.Helper()
	r.Regions = append(r.Regions, function)
	i := len(r.Regions)
	create := fmt.Sprintf("pa_timer_create2(%q)", clock)
	if r.OneIn > 0 {
		create = fmt.Sprintf("pa_timer_create3(%q,%d)", clock, r.OneIn)
	}
	if r.Spread {
		create = fmt.Sprintf(`pa_timer_create4(%q,%d,"histogram")`, clock, max(r.OneIn, 1))
	}
	r.Ask(": pa_counter_create() %s", create)
	r.Define("thread_reached_addr(%s,%#x) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%d])", threads, r.Target.Func[function], i, i)
	for _, exit := range r.Target.Exits(function) {
		r.Define("thread_reached_addr(%s,%#x) : pa_timer_stop([pa_t_%d])", threads, exit, i)
	}
}

// Enable enables all conditional requests.
func (r *Monitor) Enable() {
	r.T.Helper()
	r.Ask(": csr_enable([%s])", strings.Join(r.CSRs, ","))
}

// Disable disables all conditional requests.
func (r *Monitor) Disable() {
	r.T.Helper()
	r.Ask(": csr_disable([%s])", strings.Join(r.CSRs, ","))
}

// Where returns the placement of all conditional requests, or a text that says that they have several.
func (r *Monitor) Where() string {
	r.T.Helper()
	var name string
	for i, csr := range r.CSRs {
		x, err := r.Tool.State(omis.Token(csr))
		if err != nil {
			r.T.Fatal(err)
		}
		if i > 0 && x.Placement.Name != name {
			return "several places: " + x.Placement.String()
		}
		name = x.Placement.Name
	}
	return name
}

// RunsIn fails the test unless all conditional requests have the given placement.
func (r *Monitor) RunsIn(placement string) {
	r.T.Helper()
	if got := r.Where(); got != placement {
		r.T.Fatalf("the requests run in %s, want %s", got, placement)
	}
}
