package probes_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir/conform"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/probes"
	"mirador/probes/journal"
)

// newPersistentHarness returns a harness with a journal and with programs that outlive the
// monitor.
func newPersistentHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{TB: t, node: fake.New("here"), data: t.TempDir(), talk: new(conform.Conversation)}
	node := fake.NewPlacing(h.node, "fake")
	h.placer = node.Places[0]
	h.open(node)
	return h
}

// kill kills the gateway and returns the harness of the next one. The killed gateway must not be
// used any more.
func (h *harness) kill() *harness {
	h.Helper()
	placer, err := h.placer.Kill()
	if err != nil {
		h.Fatal(err)
	}
	next := &harness{TB: h.TB, node: h.node, placer: placer, data: h.TempDir(), talk: h.talk, weaving: h.weaving, linker: h.linker, libraries: h.libraries, source: h.source}
	text, err := os.ReadFile(filepath.Join(h.data, journal.File))
	if err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(next.data, journal.File), text, 0o600); err != nil {
		h.Fatal(err)
	}
	next.engineRecords = h.engineRecords
	next.open(placer.Alone())
	if err := next.registry.Restore(h.Context()); err != nil {
		h.Fatal(err)
	}
	return next
}

// openJournal opens the journal, if the harness has one, and passes the engine what its
// predecessor recorded.
func (h *harness) openJournal() *journal.Journal {
	if h.data == "" {
		return nil
	}
	j, err := journal.Open(h.data)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { j.Close() }) // a test may have closed it already
	h.journal = j
	h.engineRecords = h.engineRecords.successor()
	for token, t := range h.engineRecords.threads {
		h.engine.RecallThread(t.id, t.tid, token)
	}
	for key, at := range h.engineRecords.lost {
		h.engine.RecallLoss(key, at)
	}
	h.engine.SetJournal(h.engineRecords)
	return j
}

// engineRecords implements engine.Journal in memory.
type engineRecords struct {
	threads  map[omis.Token]namedThread
	inMemory map[string]bool      // by key
	lost     map[string]time.Time // by key
}

type namedThread struct {
	id  omis.ProcID
	tid int
}

// successor returns a copy for the next gateway, because the engine of the killed gateway may
// still write to r. Measurements that were in memory are lost in the copy.
func (r *engineRecords) successor() *engineRecords {
	next := &engineRecords{threads: make(map[omis.Token]namedThread), inMemory: make(map[string]bool), lost: make(map[string]time.Time)}
	if r != nil {
		maps.Copy(next.threads, r.threads)
		maps.Copy(next.lost, r.lost)
		for key := range r.inMemory {
			next.lost[key] = time.Now()
		}
	}
	return next
}

func (r *engineRecords) Named(token omis.Token, id omis.ProcID, tid int) {
	r.threads[token] = namedThread{id, tid}
}
func (r *engineRecords) Ended(token omis.Token) { delete(r.threads, token) }
func (r *engineRecords) InMemory(key string)    { r.inMemory[key] = true }
func (r *engineRecords) Unkept(key string)      { delete(r.inMemory, key); delete(r.lost, key) }

func (h *harness) app(name string) *probes.App {
	h.Helper()
	a, err := h.registry.App(name)
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// TestProbesOutliveTheGateway checks that the gateway after a killed one continues all probes.
func TestProbesOutliveTheGateway(t *testing.T) {
	h := newPersistentHarness(t)
	h.node.Add(7, []string{"bin/other"}, 7)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	h.attach("other", 7)
	a := h.attach("", 812)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	execute(p, 813)
	h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_2" threadId="t_3" value="1"/>`)
	for range 3 {
		execute(p, 813)
		h = h.kill()
		a = h.app("mmul")
		execute(p, 813)
	}
	h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_2" threadId="t_3" value="7"/>`)
	if h.placer.Placed() != 1 {
		t.Errorf("%d programs were placed", h.placer.Placed())
	}
	h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
	execute(p, 813)
	h = h.kill()
	a = h.app("mmul")
	execute(p, 813)
	h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_2" threadId="t_3" value="7"/>`)
	h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
	execute(p, 813)
	h.want(a, `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
	execute(p, 813)
	h = h.kill()
	a = h.app("mmul")
	h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_2" threadId="t_3" value="1"/>`)
	h.want(a, removeIt, `<probe id="probe-1"/>`)
	h = h.kill()
	a = h.app("mmul")
	h.want(a, valueIt, "errors: line 1, column 25: no probe probe-1 in application mmul")
	if h.placer.Standing() != 0 || h.placer.Stores() != 0 {
		t.Errorf("%d programs, %d stores are left", h.placer.Standing(), h.placer.Stores())
	}
	h.want(a, countIt, `<probe id="probe-2"/>`) // an id is not used twice
	if err := a.Release(t.Context(), false); err != nil {
		t.Error(err)
	}
	h = h.kill()
	if apps := h.registry.Apps(); len(apps) != 1 || apps[0].Name() != "other" {
		t.Errorf("applications %v", apps)
	}
}

// timesOutlive executes the unit ten times under a probe, and kills the gateway five times
// meanwhile. The value must match a regular expression, and neither of the two programs of the
// probe may be placed again.
func timesOutlive(t *testing.T, request, want string) {
	t.Helper()
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	h.post(h.attach("", 812), request)
	for range 5 {
		execute(p, 813)
		h = h.kill()
		execute(p, 813)
	}
	if got := h.post(h.app("mmul"), valueIt); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("the value is %s, want %s", got, want)
	}
	if n := h.placer.Placed(); n != 2 {
		t.Errorf("%d programs were placed", n)
	}
	h.want(h.app("mmul"), removeIt, `<probe id="probe-1"/>`)
}

// TestLossesAreReported kills a gateway that has values of a probe in its memory, because
// another tool's request made the probe run by trap. Every later gateway reports the loss as
// long as the probe exists, although the probe runs in another placement again.
func TestLossesAreReported(t *testing.T) {
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	a := h.attach("", 812)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	execute(p, 813)
	h = h.kill()
	execute(p, 813)
	if s := h.app("mmul").Probes()[0].Status(); s.Notice != "" {
		t.Errorf("nothing is lost, but the notice is %q", s.Notice)
	}
	other := h.engine.Tool("other")
	ask := func(request string, callback func(omis.Reply)) omis.Reply {
		r, err := other.Request(t.Context(), request, callback, omis.WaitForFirstReply)
		if err != nil || r.Err() != nil {
			t.Fatal(request, err, r.Err())
		}
		return r
	}
	ask(`: proc_attach3([],812,"")`, nil)
	defined := ask(fmt.Sprintf("thread_reached_addr([],%d) : print([])", entry), func(omis.Reply) {})
	csr, err := translate.Defined(defined)
	if err != nil {
		t.Fatal(err)
	}
	ask(fmt.Sprintf(": csr_enable([%s])", csr), nil)
	if n := h.placer.Standing(); n != 0 {
		t.Fatalf("%d programs are placed, want none: the probe must run by trap", n)
	}
	execute(p, 813)
	h.want(h.app("mmul"), valueIt, `<measurement nodeId="n_1" processId="p_1" threadId="t_2" value="3"/>`)
	h = h.kill()
	var first string
	for range 2 {
		s := h.app("mmul").Probes()[0].Status()
		if where := s.Placements[0].Name; where != "fake" || !strings.Contains(s.Notice, "lost: what was measured before ") {
			t.Errorf("the probe runs in the placement %s, and its notice is %q", where, s.Notice)
		}
		if first == "" {
			first = s.Notice
		}
		if s.Notice != first {
			t.Errorf("the notice changed from %q to %q", first, s.Notice)
		}
		h = h.kill()
	}
	h.want(h.app("mmul"), removeIt, `<probe id="probe-1"/>`)
	if left := h.kill().engineRecords; len(left.inMemory)+len(left.lost) != 0 {
		t.Errorf("there are records of a removed probe: %v, %v", left.inMemory, left.lost)
	}
}

// TestDefinedProbesOutliveTheGateway checks that the next gateway can flush a probe that was
// defined, and has the defaults for later requests.
func TestDefinedProbesOutliveTheGateway(t *testing.T) {
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	a := h.attach("", 812)
	h.want(a, `<instrreq><measuring delivery="5000"/></instrreq>`, "")
	h.want(a, `<instrreq activated="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><process id="p_1"><thread id="t_2"/></process></instrreq>`, `<probe id="probe-1"/>`)
	h = h.kill()
	a = h.app("mmul")
	h.want(a, `<instrreq flush="true"/>`, "")
	execute(p, 812)
	execute(p, 813)
	h.want(a, valueIt, `<measurement><measurement value="1"/></measurement>`)
	if _, cancel, err := h.registry.Subscribe("probe-1", 0); err != nil {
		t.Errorf("the defaults are forgotten: %v", err)
	} else {
		cancel()
	}
}

// TestRedefinedProbesOutliveTheGateway checks that a redefined probe has only the values since
// its redefinition.
func TestRedefinedProbesOutliveTheGateway(t *testing.T) {
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812)
	a := h.attach("", 812)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	execute(p, 812)
	h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/><metric name="COUNT"/><process id="*"/></ctrlreq>`, `<probe id="probe-1"/>`)
	execute(p, 812)
	h = h.kill()
	a = h.app("mmul")
	execute(p, 812)
	h.want(a, valueIt, `<measurement processId="p_1" value="2"/>`)
	if h.placer.Stores() != 1 {
		t.Errorf("%d stores", h.placer.Stores())
	}
}

// TestProcessesThatEndedMeanwhile checks that the gateway reports a process that ended while no
// gateway ran, and removes its programs.
func TestProcessesThatEndedMeanwhile(t *testing.T) {
	h := newPersistentHarness(t)
	h.node.Add(812, []string{"bin/mmul"}, 812)
	q := h.node.Add(813, []string{"bin/mmul"}, 813)
	h.attach("ended", 812)
	a := h.attach("both", 812, 813)
	h.want(h.app("ended"), countIt, `<probe id="probe-1"/>`)
	h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><process id="*"/></instrreq>`, `<probe id="probe-2"/>`)
	execute(q, 813)
	h.node.Process(812).End()
	h.node.Add(812, []string{"bin/mmul"}, 812) // another process with the same pid
	h = h.kill()
	status := h.app("ended").Probes()[0].Status()
	if status.State != probes.Failed || !strings.Contains(status.Failure, "process 812 has ended while no gateway was there") {
		t.Errorf("%+v", status)
	}
	if state := h.app("ended").State(); state != probes.Terminated {
		t.Errorf("the application is %s", state)
	}
	h.want(h.app("ended"), removeIt, `<probe id="probe-1"/>`)
	execute(q, 813)
	h.want(h.app("both"), `<ctrlreq action="VALUE"><probe id="probe-2"/></ctrlreq>`, `<measurement processId="p_2" value="2"/>`)
	if h.placer.Standing() != 1 || h.placer.Stores() != 2 {
		t.Errorf("%d programs and %d stores, want 1 program and 2 stores: the ended process has only its store", h.placer.Standing(), h.placer.Stores())
	}
}

// TestRecordsOfAnotherVersion checks that the gateway ignores records that it cannot parse, and
// restores the others.
func TestRecordsOfAnotherVersion(t *testing.T) {
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812)
	a := h.attach("", 812)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	if err := errors.Join(h.journal.Put("probe/probe-7", 7), h.journal.Put("app/other", "x"), h.journal.Put("issued", "many")); err != nil {
		t.Fatal(err)
	}
	execute(p, 812)
	h = h.kill()
	h.want(h.app("mmul"), valueIt, `<measurement nodeId="n_1" processId="p_1" threadId="t_1" value="1"/>`)
	if len(h.registry.Apps()) != 1 || len(h.registry.Probes()) != 1 {
		t.Errorf("%d applications, %d probes", len(h.registry.Apps()), len(h.registry.Probes()))
	}
}

// TestJournalThatCannotBeWritten checks that a request fails if the journal cannot be written.
func TestJournalThatCannotBeWritten(t *testing.T) {
	h := newPersistentHarness(t)
	h.node.Add(812, []string{"bin/mmul"}, 812)
	a := h.attach("", 812)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	if err := h.journal.Close(); err != nil {
		t.Fatal(err)
	}
	got := h.post(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`)
	if !strings.Contains(got, "will not be known any more if the gateway is killed") {
		t.Error(got)
	}
	if err := a.Release(t.Context(), false); err == nil {
		t.Error("Release does not report that the journal still has the application")
	}
}

// TestSamplesOutliveTheGateway checks that samples survive the gateway, and that the notice of the
// probe has the time without measurements.
func TestSamplesOutliveTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPersistentHarness(t)
		p := h.node.Add(812, []string{"bin/mmul"}, 812)
		a := h.attach("", 812)
		const sums = `<measuring interval="1000"><aggregate function="SUM"/><aggregate function="VARIANCE"/></measuring>`
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><process id="p_1"/>`+sums+`</instrreq>`, `<probe id="probe-1"/>`)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><process id="*"/>`+sums+`</instrreq>`, `<probe id="probe-2"/>`)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><process id="*"/>`+sums+`</instrreq>`, `<probe id="probe-3"/>`)
		time.Sleep(1500 * time.Millisecond) // measured at 0 s and 1 s
		p.Spawn(812, 813)
		time.Sleep(time.Second) // measured at 2 s
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-2"/></ctrlreq>`, `<probe id="probe-2"/>`)
		h.want(a, strings.Replace(removeIt, "probe-1", "probe-3", 1), `<probe id="probe-3"/>`)
		value := func(id, sum, variance string) {
			t.Helper()
			h.want(a, strings.Replace(valueIt, "probe-1", id, 1), `<measurement><measurement value="`+sum+`"/><measurement value="`+variance+`"/></measurement>`)
		}
		value("probe-1", "4", "0.222222222222")
		h = h.kill()
		a = h.app("mmul")
		time.Sleep(100 * time.Millisecond) // measured once more
		value("probe-1", "6", "0.25")
		value("probe-2", "4", "0.222222222222")
		for id, want := range map[string]string{"probe-1": "the gateway was killed: there are no measurements from 2000-01-01T00:00:02Z to 2000-01-01T00:00:02Z", "probe-2": ""} {
			if p, err := h.registry.Probe(id); err != nil || p.Status().Notice != want {
				t.Errorf("%s has the status %+v (%v), want the notice %q", id, p.Status(), err, want)
			}
		}
		if keys := h.journal.Keys("samples/"); !slices.Equal(keys, []string{"samples/probe-1", "samples/probe-2"}) {
			t.Errorf("the journal has %q", keys)
		}
		// A change of statistics keeps the samples, and RESET discards them, also after a kill.
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/><measuring><aggregate function="MAXIMUM"/></measuring></ctrlreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement processId="p_1" value="2"/>`)
		h.want(a, `<ctrlreq action="RESET"><probe id="probe-2"/></ctrlreq>`, `<probe id="probe-2"/>`)
		h = h.kill()
		a = h.app("mmul")
		h.want(a, valueIt, `<measurement processId="p_1" value="2"/>`)
		h.want(a, strings.Replace(valueIt, "probe-1", "probe-2", 1), `<measurement><measurement/><measurement/></measurement>`)
	})
}
