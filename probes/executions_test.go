package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis/engine/fake"
	"mirador/probes/deliver"
)

// eachIt returns a request that delivers every execution of the unit, with some metrics.
func eachIt(metrics string) string {
	return `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/>` + metrics + `<measuring delivery="-1"/></instrreq>`
}

// nested makes a thread execute the unit, and within it once more for a time in milliseconds.
func nested(p *fake.Process, tid, ms int) {
	p.Reach(tid, entry, 0x7ffc1000)
	p.Reach(tid, entry, 0x7ffc0800)
	time.Sleep(time.Duration(ms) * time.Millisecond)
	p.Reach(tid, leave, 0x7ffc0800)
	p.Reach(tid, leave, 0x7ffc1000)
}

// documents returns the documents that wait on a stream.
func documents(t *testing.T, events <-chan deliver.Event) (lines []string) {
	t.Helper()
	time.Sleep(time.Second)
	for {
		select {
		case e := <-events:
			if e.Lost != 0 {
				t.Errorf("%d documents are lost", e.Lost)
			}
			lines = append(lines, line(t, e.Document))
		default:
			return lines
		}
	}
}

func (h *harness) wantDocuments(t *testing.T, events <-chan deliver.Event, want ...string) {
	t.Helper()
	got := documents(t, events)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// withStream starts an application with a process of two threads, and reads a probe's stream.
func withStream(t *testing.T, request string, test func(*testing.T, *harness, *fake.Process, <-chan deliver.Event)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1, 2)
		a := h.attach("", 1)
		h.want(a, request, `<probe id="probe-1"/>`)
		events, cancel, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		test(t, h, p, events)
	})
}

// TestEachExecution checks that every execution is delivered, in their order, with its thread.
func TestEachExecution(t *testing.T) {
	withStream(t, eachIt(`<metric name="COUNT"/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		of := func(thread string, count int) string {
			return fmt.Sprintf(`<measurement nodeId="n_1" processId="p_1" threadId="%s" value="%d"/>`, thread, count)
		}
		execute(p, 1)
		time.Sleep(time.Microsecond)
		execute(p, 2)
		time.Sleep(time.Microsecond)
		execute(p, 1)
		h.wantDocuments(t, events, of("t_1", 1), of("t_2", 1), of("t_1", 2))
		h.wantDocuments(t, events)
		a := h.registry.Apps()[0]
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		execute(p, 1)
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		execute(p, 2)
		h.wantDocuments(t, events, of("t_2", 2))
		h.want(a, `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		execute(p, 2)
		h.wantDocuments(t, events, of("t_2", 1))
	})
}

// TestEachTime checks that executions are delivered when they end, with all values of them.
func TestEachTime(t *testing.T) {
	withStream(t, eachIt(`<metric name="COUNT"/><metric name="WC_TIME"/><process id="*"/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		nested(p, 1, 5)
		got := documents(t, events)
		if len(got) != 2 {
			t.Fatalf("2 executions are delivered as %q", got)
		}
		for _, d := range got {
			if !strings.HasPrefix(d, `<measurement processId="p_1"><measurement value="2"/><measurement value="5`) {
				t.Errorf("an execution of 5 ms after 2 have begun is delivered as %s", d)
			}
		}
	})
}

// TestEachAggregate checks that an aggregate is delivered when executions have changed it.
func TestEachAggregate(t *testing.T) {
	request := strings.Replace(eachIt(`<metric name="COUNT"/>`), `<measuring delivery="-1"/>`, `<measuring delivery="-1"><aggregate function="SUM"/></measuring>`, 1)
	withStream(t, request, func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		for range 3 {
			execute(p, 1)
		}
		h.wantDocuments(t, events, `<measurement value="3"/>`)
		h.wantDocuments(t, events)
		execute(p, 2)
		h.wantDocuments(t, events, `<measurement value="4"/>`)
	})
}

// TestLostExecutions checks that executions for which there was no room are counted in the next
// document.
func TestLostExecutions(t *testing.T) {
	withStream(t, eachIt(`<metric name="COUNT"/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		const executed, room = 10_000, 1 << 13
		for range executed {
			p.Reach(1, entry, 0x7ffc1000)
		}
		got := documents(t, events)
		if len(got) != room {
			t.Fatalf("%d executions are delivered, want %d", len(got), room)
		}
		first := fmt.Sprintf(`<measurement nodeId="n_1" processId="p_1" threadId="t_1" value="%d" xmlns:gateway="urn:mirador:gateway" gateway:lost="%d"/>`, executed-room+1, executed-room)
		if got[0] != first || !strings.HasSuffix(got[room-1], `value="10000"/>`) {
			t.Errorf("delivered %s to %s, want first %s", got[0], got[room-1], first)
		}
	})
}

// TestEventTraceAlone checks that an event trace needs no metric, and then has no value.
func TestEventTraceAlone(t *testing.T) {
	withStream(t, eachIt(`<event/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		execute(p, 1)
		if got := documents(t, events); len(got) != 2 || !strings.Contains(got[0], `gateway:event="enter" gateway:time="`) {
			t.Errorf("an entry and an exit are delivered as %q", got)
		}
		a := h.registry.Apps()[0]
		h.want(a, valueIt, `<measurement/>`)
		h.want(a, removeIt, `<probe id="probe-1"/>`)
	})
}

// TestEventTrace checks that each entry and exit is delivered, also of executions that an exception
// left, and an exit without an entry.
func TestEventTrace(t *testing.T) {
	request := strings.Replace(eachIt(`<metric name="COUNT"/><event/>`), "</instrreq>", `<process id="p_1"/></instrreq>`, 1)
	withStream(t, request, func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		p.Reach(2, leave, 0x7ffc1000)
		time.Sleep(time.Millisecond)
		nested(p, 1, 5)
		p.Reach(1, entry, 0x7ffc0900)
		p.Reach(1, entry, 0x7ffc1000)
		var what []string
		for _, d := range documents(t, events) {
			var word, value string
			if _, after, ok := strings.Cut(d, `gateway:event="`); ok {
				word, _, _ = strings.Cut(after, `"`)
			}
			if _, after, ok := strings.Cut(d, ` value="`); ok {
				value, _, _ = strings.Cut(after, `"`)
			}
			what = append(what, word+value)
		}
		if got, want := fmt.Sprint(what), "[unmatched0 enter1 enter2 leave2 leave2 enter3 abandon enter4]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
