package probes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/probes"
)

func TestLifeOfAProbe(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	a := h.attach("", 812)
	control := func(action string) {
		t.Helper()
		h.want(a, `<ctrlreq action="`+action+`"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
	}
	value := func(count string) {
		t.Helper()
		h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_1" threadId="t_2" value="`+count+`"/>`)
	}

	h.want(a, countIt, `<probe id="probe-1"/>`)
	h.want(a, valueIt, `<measurement/>`)
	execute(p, 813)
	execute(p, 813)
	value("2")
	control("DEACTIVATE")
	control("DEACTIVATE")
	if n := p.Watches(); n != 0 {
		t.Errorf("%d places are watched for an inactive probe", n)
	}
	execute(p, 813)
	value("2")
	control("ACTIVATE")
	control("ACTIVATE")
	execute(p, 813)
	value("3")
	control("RESET")
	execute(p, 813)
	value("1")
	control("REMOVE")
	if n := p.Watches(); n != 0 {
		t.Errorf("%d places are watched after the probe was removed", n)
	}
	h.want(a, valueIt, "errors: line 1, column 25: no probe probe-1 in application mmul")
	h.want(a, countIt, `<probe id="probe-2"/>`) // an id is not used twice
}

func TestTimesAreMilliseconds(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812)
	a := h.attach("", 812)
	h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="multiply"/><metric name="WC_TIME"/>
		<measuring><aggregate function="SUM"/></measuring><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
	p.Reach(812, entry, 0x1000)
	end := h.node.Now() + 5_000_000
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: 812, Addr: leave, SP: 0x1000, Time: end})
	got := h.post(a, valueIt)
	var ms float64
	if _, err := fmt.Sscanf(got, `<measurement value="%f"/>`, &ms); err != nil || ms < 5 || ms > 500 {
		t.Errorf("slightly more than 5 ms are reported as %s", got)
	}
}

func TestNamesOfApplications(t *testing.T) {
	h := newHarness(t)
	for pid := 1; pid <= 3; pid++ {
		h.node.Add(pid, []string{"/opt/x y"}, pid)
	}
	var names []string
	for pid := 1; pid <= 2; pid++ {
		names = append(names, h.attach("", pid).Name())
	}
	if want := []string{"x_y", "x_y-2"}; !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	if _, err := h.registry.Attach(t.Context(), "a/b", []int{3}); kind(err) != probes.Invalid {
		t.Errorf("a/b as a name: %v", err)
	}
	if _, err := h.registry.App("lu"); err == nil || err.Error() != "no application lu; there are x_y, x_y-2" {
		t.Errorf("an unknown application: %v", err)
	}
	if _, err := h.registry.Only(); kind(err) != probes.Conflict {
		t.Errorf("no name with two applications: %v", err)
	}
}

func kind(err error) probes.Kind {
	if es := probes.AsErrors(err); len(es) > 0 {
		return es[0].Kind
	}
	return 0
}

func TestRun(t *testing.T) {
	h := newHarness(t)
	a, err := h.registry.Run(t.Context(), "", node.Launch{
		Path: "bin/mmul", Args: []string{`8 "`, ""}, Env: []string{"PWD=/old", "LANG=C"}, IO: []string{"", "out"}, Dir: "/there",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := h.node.Launched()[0]
	if l.Path != "/there/bin/mmul" || !slices.Equal(l.Args, []string{`8 "`, ""}) ||
		!slices.Equal(l.Env, []string{"LANG=C", "PWD=/there"}) || !slices.Equal(l.IO, []string{"", "/there/out"}) {
		t.Errorf("launched %+v", l)
	}
	ps := a.Processes()
	if a.Name() != "mmul" || len(ps) != 1 || ps[0].Token != "p_1" || !ps[0].Started || ps[0].Argv[0] != "/there/bin/mmul" {
		t.Errorf("application %s with %+v", a.Name(), ps)
	}
	id, err := h.node.Identify(ps[0].PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.node.Signal(id, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(t.Context(), true); err != nil {
		t.Error(err)
	}
	if a.State() != probes.Released || len(h.registry.Apps()) != 0 {
		t.Errorf("after its release the application is %s", a.State())
	}
	if err := a.Release(t.Context(), true); kind(err) != probes.NotFound {
		t.Errorf("released twice: %v", err)
	}
	h.want(a, valueIt, "errors: line 1, column 1: application mmul has been released")
}

func TestRefusedProcess(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	h.node.Add(2, []string{"mmul"}, 2).Refuse = omis.Errorf(omis.NoPermission, "process 2 is traced by gdb (pid 790)")
	_, err := h.registry.Attach(t.Context(), "", []int{1, 2})
	if kind(err) != probes.Forbidden || err.Error() != "process 2 is traced by gdb (pid 790)" {
		t.Errorf("%v", err)
	}
	if apps := h.registry.Apps(); len(apps) != 0 {
		t.Errorf("application %s exists after its processes were refused", apps[0].Name())
	}
	a := h.attach("both", 1)
	if _, err := h.registry.Attach(t.Context(), "both", []int{2, 7}); len(probes.AsErrors(err)) != 2 {
		t.Errorf("two processes that cannot be attached: %v", err)
	}
	if ps := a.Processes(); len(ps) != 1 {
		t.Errorf("the application has %+v", ps)
	}
}

func TestProbesFollowProcessesThatJoin(t *testing.T) {
	h := newHarness(t)
	first, second := h.node.Add(1, []string{"mmul"}, 1), h.node.Add(2, []string{"mmul"}, 2)
	a := h.attach("", 1)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><process id="p_1"/></instrreq>`, `<probe id="probe-2"/>`)
	execute(first, 1)
	h.attach("mmul", 2)
	execute(second, 2)
	execute(second, 2)
	h.want(a, valueIt, `<measurement nodeId="n_1"><measurement processId="p_1" threadId="t_1" value="1"/><measurement processId="p_2" threadId="t_2" value="2"/></measurement>`)
	if n := second.Watches(); n != 1 {
		t.Errorf("%d places are watched in the process that joined, want 1: probe-2 names the other process", n)
	}
	h.want(a, removeIt, `<probe id="probe-1"/>`)
	if n := second.Watches(); n != 0 {
		t.Errorf("%d places are watched after the probe was removed", n)
	}
}

func TestProbesOutliveTheirProcess(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	p.Threads[0].Info.TotalTime = 1500 * time.Millisecond
	a := h.attach("", 1)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	h.want(a, `<instrreq activated="true" flush="true"><metric name="CPU_TIME"/><process id="p_1"><thread id="t_1"/></process></instrreq>`, `<probe id="probe-2"/>`)
	execute(p, 1)
	both := `<ctrlreq action="VALUE"><probe id="probe-1"/><probe id="probe-2"/></ctrlreq>`
	before := h.post(a, both)
	p.End()
	eventually(t, func() bool { return a.State() == probes.Terminated })
	h.want(a, both, before)
	probe, err := h.registry.Probe("probe-1")
	if err != nil {
		t.Fatal(err)
	}
	if s := probe.Status(); !s.Gone || s.State != probes.Active {
		t.Errorf("status %+v", s)
	}
	if hits, err := probe.Hits(t.Context()); hits != 1 || err != nil {
		t.Errorf("%d hits (%v)", hits, err)
	}
	if got := h.post(a, countIt); got != "errors: line 1, column 1: application mmul has no process any more" {
		t.Error(got)
	}
	h.want(a, removeIt, `<probe id="probe-1"/>`)
}

// TestNothingIsLeftOfAProbeThatFails checks that no probe and no watch remains if the conditional
// requests of a probe cannot be enabled.
func TestNothingIsLeftOfAProbeThatFails(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	p.Unmapped = []uint64{leave}
	a := h.attach("", 1)
	got := h.post(a, strings.Replace(countIt, "COUNT", "WC_TIME", 1))
	if got != "errors: line 1, column 1: cannot set a breakpoint at 0x401190: nothing is mapped there" {
		t.Error(got)
	}
	if n := p.Watches(); n != 0 || len(h.registry.Probes()) != 0 {
		t.Errorf("%d places are watched, %d probes are kept", n, len(h.registry.Probes()))
	}
}

func TestProbesOfOtherApplications(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	h.node.Add(2, []string{"lu"}, 2)
	h.want(h.attach("", 1), countIt, `<probe id="probe-1"/>`)
	h.want(h.attach("", 2), valueIt, "errors: line 1, column 25: probe probe-1 belongs to application mmul, not to lu")
}

func TestCancelledRequest(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.registry.Attach(ctx, "", []int{1}); kind(err) != probes.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestConcurrentUse reads values while requests change the probe and threads execute it.
func TestConcurrentUse(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1, 2)
	a := h.attach("", 1)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	var all sync.WaitGroup
	repeat := func(f func()) {
		all.Go(func() {
			for range 50 {
				f()
			}
		})
	}
	repeat(func() { execute(p, 2) })
	repeat(func() { h.post(a, valueIt) })
	repeat(func() { h.registry.Probes(); h.registry.Apps() })
	for _, action := range []string{"ACTIVATE", "DEACTIVATE", "RESET"} {
		repeat(func() { h.post(a, `<ctrlreq action="`+action+`"><probe id="probe-1"/></ctrlreq>`) })
	}
	repeat(func() {
		h.post(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/><metric name="WC_TIME"/><metric name="COUNT"/></ctrlreq>`)
	})
	all.Wait()
	h.want(a, removeIt, `<probe id="probe-1"/>`)
	if n := p.Watches(); n != 0 {
		t.Errorf("%d places are watched after the probe was removed", n)
	}
}
