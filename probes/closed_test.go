package probes_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/probes"
)

const countUnit = `<instrreq activated="true" flush="true"><codeRegion from="` + unit + `"/><metric name="COUNT"/><process id="*"/></instrreq>`

// startClosable starts an application with processes that have a library with unit, all at the same address, as forked
// processes have, and counts unit.
func startClosable(h *harness, linker node.Start, processes ...int) (*probes.App, []*fake.Process) {
	h.linker, h.libraries = linker, make(map[int]uint64)
	var all []*fake.Process
	for _, pid := range processes {
		h.libraries[pid] = 0
		all = append(all, h.node.Add(pid, []string{"mmul"}, pid))
	}
	a := h.attach("mmul", processes...)
	h.want(a, countUnit, `<probe id="probe-1"/>`)
	return a, all
}

func (h *harness) notice(p *probes.App) string { return p.Probes()[0].Status().Notice }

// TestClosedByOneOfTwo checks that a process that closes a library does not change what is counted in another process
// that has it at the same address, and that it is counted again at another address.
func TestClosedByOneOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, all := startClosable(h, node.Start{At: linkerAt}, 11, 12)
		one, two := all[0], all[1]
		one.Reach(11, entry, 100)
		two.Reach(12, entry, 100)
		delete(h.libraries, 11)
		one.Reach(11, linkerAt, 100)
		synctest.Wait()
		if got := h.notice(a); !strings.Contains(got, "plugin.so was closed in p_1") {
			t.Errorf("the notice is %q", got)
		}
		one.Reach(11, entry, 100) // other code that is there now
		two.Reach(12, entry, 100)
		h.libraries[11] = 0x1000
		one.Reach(11, linkerAt, 100)
		synctest.Wait()
		if got := h.notice(a); got != "" {
			t.Errorf("the notice is %q", got)
		}
		one.Reach(11, entry, 100)
		one.Reach(11, entry+0x1000, 100)
		two.Reach(12, entry, 100)
		const want = `<measurement><measurement processId="p_1" value="2"/><measurement processId="p_2" value="3"/></measurement>`
		h.want(a, `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`, want)
		if n := one.Suspended(11) + two.Suspended(12); n != 0 {
			t.Errorf("the processes are suspended %d times", n)
		}
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		one.Reach(11, entry, 100)
		two.Reach(12, entry, 100)
		h.want(a, `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`, strings.Replace(want, `"3"`, `"4"`, 1))
		h.want(a, `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		if n := one.Watches() + two.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// TestClosedLongAgo checks that a probe in a library that is closed ends with its process and not before.
func TestClosedLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, all := startClosable(h, node.Start{At: linkerAt}, 11)
		delete(h.libraries, 11)
		all[0].Reach(11, linkerAt, 100)
		synctest.Wait()
		if s := a.Probes()[0].Status(); s.Gone || s.State != probes.Active {
			t.Errorf("the probe is %+v", s)
		}
		all[0].End()
		synctest.Wait()
		if s := a.Probes()[0].Status(); !s.Gone {
			t.Errorf("the probe is %+v", s)
		}
	})
}

// TestClosingIsNotNoticed checks that a probe says if the monitor will not notice that its library is closed.
func TestClosingIsNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, _ := startClosable(h, node.Start{}, 11)
		if got := h.notice(a); !strings.Contains(got, "if p_1 closes plugin.so") {
			t.Errorf("the notice is %q", got)
		}
	})
}

// TestClosedWhenGatewayIsKilled checks that a process that has closed a library is measured again when it opens the
// library under the next gateway, and that the probe says that executions may be missing.
func TestClosedWhenGatewayIsKilled(t *testing.T) {
	h := newPersistentHarness(t)
	_, all := startClosable(h, node.Start{At: linkerAt}, 11, 12)
	one, two := all[0], all[1]
	one.Reach(11, entry, 100)
	two.Reach(12, entry, 100)
	delete(h.libraries, 11)
	killed := h
	h = h.kill()
	killed.linker.Loading = true // the killed gateway must do nothing, although it still runs
	a := h.app("mmul")
	if got := h.notice(a); !strings.Contains(got, "while no gateway was there: p_2 may have closed plugin.so") {
		t.Errorf("the notice is %q", got)
	}
	h.libraries[11] = 0x1000
	one.Reach(11, linkerAt, 100)
	for end := time.Now().Add(10 * time.Second); one.Suspended(11) > 0 || len(a.Probes()[0].Status().Requests) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process is not measured again")
		}
	}
	one.Reach(11, entry+0x1000, 100)
	two.Reach(12, entry, 100)
	h.want(a, `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`, `<measurement><measurement processId="p_1" value="2"/><measurement processId="p_2" value="2"/></measurement>`)
}
