//go:build linux && amd64

package kernel_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/ext/pa"
	"mirador/omis/linux"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// rig is a monitor, whole but for the gateway, that has attached to a target. With a
// placer its programs run in the kernel or in the target, without by trap.
type rig struct {
	t       testing.TB
	tool    *engine.Tool
	g       *target
	csrs    []string
	regions []string // of the counters and timers, in their order
	oneIn   int      // how many intervals there are for one that is timed; 0: all are
}

// placing is a node that places programs in one way.
type placing struct {
	*linux.Node
	placer omis.Placer
}

func (p placing) Placers() []omis.Placer { return []omis.Placer{p.placer} }

func (p placing) ReadMemory(id omis.ProcID, addr uint64, buf []byte) (int, error) {
	n, err := p.Node.ReadMemory(id, addr, buf)
	if k, ok := p.placer.(*kernel.Placer); ok {
		k.Hide(id, addr, buf[:n])
	}
	return n, err
}

func newRig(t testing.TB, placement string, g *target) *rig {
	t.Helper()
	return openRig(t, linux.Config{Name: "here"}, placement, g)
}

func openRig(t testing.TB, c linux.Config, placement string, g *target) *rig {
	t.Helper()
	n, err := linux.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	var node omis.Node = n
	switch placement {
	case kernel.Name:
		node = placing{n, newPlacer(t)}
	case inline.Name:
		p := inline.New(n)
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		node = placing{n, p}
	}
	e, err := engine.New(node, slog.New(slog.DiscardHandler), pa.New())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, tool: e.Tool("test"), g: g}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	r.ask(`: proc_attach3([],%d,"")`, g.ID.PID)
	return r
}

func (r *rig) ask(format string, args ...any) omis.Reply {
	r.t.Helper()
	request := fmt.Sprintf(format, args...)
	reply, err := r.tool.Request(context.Background(), request, nil, 0)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		r.t.Fatalf("%s: %v", request, err)
	}
	return reply
}

// define defines a conditional request.
func (r *rig) define(format string, args ...any) {
	r.t.Helper()
	reply := r.ask(format, args...)
	r.csrs = append(r.csrs, string(reply[0][0].Values[0].Token()))
}

// region counts and times a function, for some threads or all of them ("[]").
func (r *rig) region(function, threads string) {
	r.t.Helper()
	r.regionBy("ordered", function, threads)
}

// regionBy does so by a clock.
func (r *rig) regionBy(clock, function, threads string) {
	r.t.Helper()
	r.regions = append(r.regions, function)
	i := len(r.regions)
	create := fmt.Sprintf("pa_timer_create2(%q)", clock)
	if r.oneIn > 0 {
		create = fmt.Sprintf("pa_timer_create3(%q,%d)", clock, r.oneIn)
	}
	r.ask(": pa_counter_create() %s", create)
	r.define("thread_reached_addr(%s,%#x) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%d])", threads, r.g.fun[function], i, i)
	for _, exit := range r.g.exits(function) {
		r.define("thread_reached_addr(%s,%#x) : pa_timer_stop([pa_t_%d])", threads, exit, i)
	}
}

func (r *rig) enable() {
	r.t.Helper()
	r.ask(": csr_enable([%s])", strings.Join(r.csrs, ","))
}

func (r *rig) disable() {
	r.t.Helper()
	r.ask(": csr_disable([%s])", strings.Join(r.csrs, ","))
}

// where is where all requests run.
func (r *rig) where() string {
	r.t.Helper()
	var name string
	for i, csr := range r.csrs {
		x, err := r.tool.State(omis.Token(csr))
		if err != nil {
			r.t.Fatal(err)
		}
		if i > 0 && x.Placement.Name != name {
			return "several places: " + x.Placement.String()
		}
		name = x.Placement.Name
	}
	return name
}

// row is what is known of one thread in a region.
type row struct {
	thread                            omis.Token
	count, intervals, unfinished      int64
	last, sum, squares, least, utmost float64
	some                              bool  // only some of the intervals are timed
	begun                             int64 // of all
}

// rows of a region, in the order in which the threads came.
func (r *rig) rows(region int) []row {
	r.t.Helper()
	reply := r.ask(": pa_counter_read([pa_c_%d]) pa_timer_read([pa_t_%d])", region, region)
	var list []row
	counted, timed := reply[1][0].Values[1].List, reply[2][0].Values[1].List
	for i := 0; i < len(counted); i += 3 {
		w := row{thread: counted[i+1].Token()}
		w.count, _ = counted[i+2].Int64()
		list = append(list, w)
	}
	for i := 0; i < len(timed); i += 9 {
		v := timed[i:]
		for k := range list {
			if w := &list[k]; w.thread == v[1].Token() {
				w.intervals, _ = v[2].Int64()
				w.unfinished, _ = v[8].Int64()
				w.last, w.sum, w.squares, w.least, w.utmost = v[3].Float, v[4].Float, v[5].Float, v[6].Float, v[7].Float
			}
		}
	}
	for i := range list {
		list[i].some = r.oneIn > 0
	}
	if r.oneIn > 0 {
		r.estimates(region, list)
	}
	return list
}

// estimates adds how many intervals began to the rows of a region.
func (r *rig) estimates(region int, list []row) {
	r.t.Helper()
	told := r.ask(": pa_timer_estimate([pa_t_%d],0)", region)[1][0].Values[1].List
	for ; len(told) > 0; told = told[11:] {
		for k := range list {
			if list[k].thread == told[1].Token() {
				list[k].begun, _ = told[2].Int64()
			}
		}
	}
}
