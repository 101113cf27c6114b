package engine_test

import (
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
)

// successor starts the engine of another monitor over what a killed one has left. The
// counter and the timer of the region are made again under their keys.
func successor(t *testing.T, placer *fake.Placer, ended ...omis.ProcID) (*bench, *fake.Placer) {
	t.Helper()
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	b := startOver(t, []node.Node{heir.Alone()}, []*fake.Node{heir.Node}, pa.New())
	b.engine.RecallProcess(omis.ProcID{PID: 1, Start: heir.Process(1).ID.Start}, "p_7")
	b.engine.RecallThread(heir.Process(1).ID, 12, "t_9")
	b.ask(`: proc_attach3([],1,"") pa_counter_create() pa_timer_create()`)
	keepBoth(b, ended...)
	return b, heir
}

func keepBoth(b *bench, ended ...omis.ProcID) {
	b.Helper()
	for token, key := range map[omis.Token]string{"pa_c_1": "count", "pa_t_1": "time"} {
		if _, err := b.tool.Keep(token, key, ended...); err != nil {
			b.Fatal(err)
		}
	}
}

// watchRegion defines the two requests of a region and enables them.
func watchRegion(b *bench) {
	b.Helper()
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])")
	b.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])")
	b.ask(": csr_enable([c_1,c_2])")
}

// kept starts an engine with a region that is kept.
func kept(t *testing.T) (*bench, *fake.Placer, *fake.Process) {
	t.Helper()
	b, placer, p := startPlacing(t)
	b.ask(": pa_counter_create() pa_timer_create()")
	keepBoth(b)
	watchRegion(b)
	return b, placer, p
}

// What is kept counts on while there is no monitor, and the next one takes it over as
// it stands, under the former tokens.
func TestKeptProgramsAreTakenOver(t *testing.T) {
	_, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	p.Reach(12, 0x10, 100)
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	p.Reach(12, 0x20, 100)
	p.Reach(11, 0x10, 100)
	b, heir := successor(t, heir)
	b.counts("2,[p_7,t_10,2,p_7,t_9,1]") // before anything is enabled
	p.Reach(11, 0x20, 100)               // while the requests are enabled again
	watchRegion(b)
	b.runs("c_1", "fake", "it may")
	if heir.Placed() != 2 {
		t.Errorf("%d programs were placed: those that stood were not taken over", heir.Placed())
	}
	p.Reach(12, 0x10, 100)
	b.counts("2,[p_7,t_10,2,p_7,t_9,2]")
	b.intervals(2, 1)
	if left, err := b.engine.Settle(); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	b.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1]) pa_timer_delete([pa_t_1])")
	if heir.Standing() != 0 || heir.Stores() != 0 || p.Watches() != 0 {
		t.Errorf("%d programs, %d stores, %d watches are left", heir.Standing(), heir.Stores(), p.Watches())
	}
}

// What nobody asks for is taken away: programs whose request is not enabled again, and
// stores whose object is not made again.
func TestOrphansAreTakenAway(t *testing.T) {
	_, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	b := startOver(t, []node.Node{heir.Alone()}, []*fake.Node{heir.Node}, pa.New())
	b.ask(`: proc_attach3([],1,"") pa_counter_create()`)
	if _, err := b.tool.Keep("pa_c_1", "count"); err != nil {
		t.Fatal(err)
	}
	left, err := b.engine.Settle()
	if err != nil || len(left) != 2 || left[0].Proc != p.ID {
		t.Errorf("%v were taken away, %v", left, err)
	}
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,1]")
	if heir.Standing() != 0 || heir.Stores() != 1 {
		t.Errorf("%d programs, %d stores", heir.Standing(), heir.Stores())
	}
}

// So it is in processes that a tool attaches to later.
func TestOrphansAreTakenAwayLater(t *testing.T) {
	_, placer, _ := kept(t)
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	b := startOver(t, []node.Node{heir.Alone()}, []*fake.Node{heir.Node}, pa.New())
	if left, err := b.engine.Settle(); err != nil || len(left) != 0 || heir.Standing() == 0 {
		t.Errorf("%v were taken away, %v, %d programs are left", left, err, heir.Standing())
	}
	b.ask(`: proc_attach3([],1,"")`)
	if heir.Standing() != 0 || heir.Stores() != 0 {
		t.Errorf("%d programs, %d stores are left", heir.Standing(), heir.Stores())
	}
}

// What is not kept ends with the monitor.
func TestOnlyWhatIsKeptOutlivesTheMonitor(t *testing.T) {
	b, placer, _ := startPlacing(t)
	region(b)
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	if heir.Standing() != 0 || heir.Stores() != 0 {
		t.Errorf("%d programs, %d stores are left", heir.Standing(), heir.Stores())
	}
}

// The rows of a process outlive it, and the monitor that saw or did not see its end.
func TestRowsOfEndedProcessesAreKept(t *testing.T) {
	b, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	p.End()
	eventually(t, func() bool { return placer.Standing() == 0 })
	b.counts("1,[p_1,t_1,1]")
	heir, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	next := startOver(t, []node.Node{heir.Alone()}, []*fake.Node{heir.Node}, pa.New())
	next.engine.RecallProcess(p.ID, "p_1")
	next.ask(`: pa_counter_create() pa_timer_create()`)
	keepBoth(next, p.ID)
	next.counts("1,[p_1,t_1,1]")
	heir.Add(2, nil, 21)
	next.ask(`: proc_attach3([],2,"")`)
	watchRegion(next)
	heir.Process(2).Reach(21, 0x10, 100)
	next.counts("2,[p_1,t_1,1,p_2,t_2,1]")
	next.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1]) pa_timer_delete([pa_t_1])")
	if heir.Stores() != 0 {
		t.Errorf("%d stores are left", heir.Stores())
	}
}

// A request that stays disabled leaves what it measured in its store.
func TestKeptStoresOutlastTheirPrograms(t *testing.T) {
	b, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	b.ask(": csr_disable([c_1,c_2])")
	eventually(t, func() bool { return placer.Standing() == 0 })
	if placer.Stores() != 2 {
		t.Errorf("%d stores", placer.Stores())
	}
	b, _ = successor(t, placer)
	b.counts("1,[p_7,t_10,1]")
	watchRegion(b)
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_7,t_10,2]")
	b.ask(": proc_detach([p_7])")
	b.counts("1,[p_7,t_10,2]")
}

// A request that the monitor executes in place of its program keeps its values.
func TestKeptAndEvicted(t *testing.T) {
	b, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])")
	b.runs("c_1", "trap", "a breakpoint of c_3")
	if placer.Stores() != 0 {
		t.Errorf("%d stores", placer.Stores())
	}
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,2]")
	b.ask(": csr_delete([c_3]) csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	b.runs("c_1", "fake", "")
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,3]")
	if placer.Stores() != 2 {
		t.Errorf("%d stores", placer.Stores())
	}
}

// journal is an engine.Journal that lists the keys of values in memory.
type journal map[string]bool

func (journal) Named(omis.Token, omis.ProcID, int) {}
func (journal) Ended(omis.Token)                   {}
func (j journal) InMemory(key string)              { j[key] = true }
func (j journal) Unkept(key string)                { delete(j, key) }

// TestValuesInMemoryAreRecorded checks that the journal knows the keys whose values a
// SIGKILL would end, before the monitor has such a value, and until the object is deleted.
func TestValuesInMemoryAreRecorded(t *testing.T) {
	b, _, p := startPlacing(t)
	j := make(journal)
	b.engine.SetJournal(j)
	b.ask(": pa_counter_create() pa_timer_create()")
	keepBoth(b)
	watchRegion(b)
	p.Reach(11, 0x10, 100)
	if len(j) != 0 {
		t.Errorf("recorded are %v, but a program of the target has all values", j)
	}
	b.ask("thread_reached_addr([],0x20) : print([])")
	b.ask(": csr_enable([c_3])")
	b.runs("c_1", "trap", "c_2, which opens or closes the same intervals")
	if !j["count"] || !j["time"] {
		t.Errorf("recorded are %v, want count and time", j)
	}
	b.ask(": csr_delete([c_3]) csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	b.runs("c_1", "fake", "")
	if !j["count"] || !j["time"] {
		t.Errorf("recorded are %v, want count and time: the monitor still has the former values", j)
	}
	b.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1])")
	if j["count"] || !j["time"] {
		t.Errorf("recorded are %v, want time alone", j)
	}
	b.engine.RecallLoss("other", time.Unix(7, 0))
	if _, err := b.engine.Settle(); err != nil {
		t.Fatal(err)
	}
	if lost, err := b.tool.Keep("pa_t_1", "other"); err != nil || !lost.IsZero() {
		t.Errorf("lost at %v, %v, want never: Settle forgets what no object has asked for", lost, err)
	}
}
