package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/program"
)

// killed kills the monitor of a placement and returns the placement of the next monitor.
func killed(t *testing.T, placer *fake.Placer) *fake.Placer {
	t.Helper()
	next, err := placer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// startAlone starts an engine whose only placement besides trap is placer.
func startAlone(t *testing.T, placer *fake.Placer) *bench {
	t.Helper()
	return startOver(t, []program.Machine{placer.Alone()}, []*fake.Node{placer.Node}, pa.New())
}

// successor kills the monitor and starts the next one, whose tool creates the counter and the timer
// of the region again, under their keys.
func successor(t *testing.T, placer *fake.Placer, ended ...omis.ProcID) (*bench, *fake.Placer) {
	t.Helper()
	placer = killed(t, placer)
	b := startAlone(t, placer)
	b.engine.RecallProcess(omis.ProcID{PID: 1, Start: placer.Process(1).ID.Start}, "p_7")
	b.engine.RecallThread(placer.Process(1).ID, 12, "t_9")
	b.ask(`: proc_attach3([],1,"") pa_counter_create() pa_timer_create()`)
	keepBoth(b, ended...)
	return b, placer
}

func keepBoth(b *bench, ended ...omis.ProcID) {
	b.Helper()
	for token, key := range map[omis.Token]string{"pa_c_1": "count", "pa_t_1": "time"} {
		if _, err := b.tool.Keep(token, key, ended...); err != nil {
			b.Fatal(err)
		}
	}
}

// kept starts an engine with a region whose counter and timer are kept.
func kept(t *testing.T) (*bench, *fake.Placer, *fake.Process) {
	t.Helper()
	b, placer, p := startPlacing(t)
	measureKept(b)
	return b, placer, p
}

// TestKeptProgramsAreAdopted checks that kept programs continue without a monitor, and that the next
// monitor adopts them without a change, with the former tokens.
func TestKeptProgramsAreAdopted(t *testing.T) {
	_, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	p.Reach(12, 0x10, 100)
	placer = killed(t, placer)
	p.Reach(12, 0x20, 100)
	p.Reach(11, 0x10, 100)
	b, placer := successor(t, placer)
	b.counts("2,[p_7,t_10,2,p_7,t_9,1]") // before the requests are enabled again
	p.Reach(11, 0x20, 100)
	watchRegion(b)
	b.runs("c_1", "fake", "it may")
	if placer.Placed() != 2 {
		t.Errorf("%d programs were placed, want 2: the kept programs were not adopted", placer.Placed())
	}
	p.Reach(12, 0x10, 100)
	b.counts("2,[p_7,t_10,2,p_7,t_9,2]")
	b.intervals(2, 1)
	if left, err := b.engine.Settle(); err != nil || len(left) != 0 {
		t.Errorf("orphans %v, %v", left, err)
	}
	b.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1]) pa_timer_delete([pa_t_1])")
	if placer.Standing() != 0 || placer.Stores() != 0 || p.Watches() != 0 {
		t.Errorf("%d programs, %d stores, %d watches are left", placer.Standing(), placer.Stores(), p.Watches())
	}
}

// TestOrphansAreRemoved checks that programs end with the monitor unless all their objects are kept,
// and that the next monitor removes kept programs and stores that no tool asks for.
func TestOrphansAreRemoved(t *testing.T) {
	const attach = `: proc_attach3([],1,"")`
	for name, c := range map[string]struct {
		measure       func(*bench) // by the killed monitor
		outlive       int          // number of programs, and of stores, that outlive it
		before, after []string     // requests of the next monitor's tool, before and after Settle
		again         bool         // the tool keeps the counter again
		orphans       int          // that Settle removes
		stores        int          // in the end
		counts        string       // rows of the counter in the end
	}{
		"nothing is kept":                {measure: region, before: []string{attach}},
		"only the counter is kept again": {measure: measureKept, outlive: 2, before: []string{attach, ": pa_counter_create()"}, again: true, orphans: 2, stores: 1, counts: "1,[p_1,t_1,1]"},
		"attached after Settle":          {measure: measureKept, outlive: 2, after: []string{attach}},
	} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			c.measure(b)
			p.Reach(11, 0x10, 100)
			placer = killed(t, placer)
			if placer.Standing() != c.outlive || placer.Stores() != c.outlive {
				t.Errorf("%d programs and %d stores outlive the monitor, want %d", placer.Standing(), placer.Stores(), c.outlive)
			}
			b = startAlone(t, placer)
			b.must(c.before...)
			if c.again {
				if _, err := b.tool.Keep("pa_c_1", "count"); err != nil {
					t.Fatal(err)
				}
			}
			orphans, err := b.engine.Settle()
			if err != nil || len(orphans) != c.orphans || len(orphans) > 0 && orphans[0].Proc != p.ID {
				t.Errorf("Settle removed %v, %v", orphans, err)
			}
			if n := placer.Standing(); n != c.outlive-c.orphans {
				t.Errorf("after Settle there are %d programs, want %d", n, c.outlive-c.orphans)
			}
			b.must(c.after...)
			p.Reach(11, 0x10, 100)
			if c.counts != "" {
				b.counts(c.counts)
			}
			if placer.Standing() != 0 || placer.Stores() != c.stores {
				t.Errorf("%d programs, %d stores; want 0, %d", placer.Standing(), placer.Stores(), c.stores)
			}
		})
	}
}

// measureKept measures a region whose counter and timer are kept.
func measureKept(b *bench) {
	b.Helper()
	b.ask(": pa_counter_create() pa_timer_create()")
	keepBoth(b)
	watchRegion(b)
}

// TestRowsOfEndedProcessesAreKept checks that the rows of a process outlive the process and then the
// monitor.
func TestRowsOfEndedProcessesAreKept(t *testing.T) {
	b, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	p.End()
	eventually(t, func() bool { return placer.Standing() == 0 })
	b.counts("1,[p_1,t_1,1]")
	placer = killed(t, placer)
	next := startAlone(t, placer)
	next.engine.RecallProcess(p.ID, "p_1")
	next.ask(`: pa_counter_create() pa_timer_create()`)
	keepBoth(next, p.ID)
	next.counts("1,[p_1,t_1,1]")
	placer.Add(2, nil, 21)
	next.ask(`: proc_attach3([],2,"")`)
	watchRegion(next)
	placer.Process(2).Reach(21, 0x10, 100)
	next.counts("2,[p_1,t_1,1,p_2,t_2,1]")
	next.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1]) pa_timer_delete([pa_t_1])")
	if placer.Stores() != 0 {
		t.Errorf("%d stores are left", placer.Stores())
	}
}

// TestKeptStoresOutlastTheirPrograms checks that the store of a kept counter remains after the programs
// of its disabled requests were removed.
func TestKeptStoresOutlastTheirPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, placer, p := kept(t)
		p.Reach(11, 0x10, 100)
		b.ask(": csr_disable([c_1,c_2])")
		eventually(t, func() bool { return placer.Standing() == 0 })
		if placer.Stores() != 2 {
			t.Errorf("there are %d stores", placer.Stores())
		}
		b, _ = successor(t, placer)
		b.counts("1,[p_7,t_10,1]")
		watchRegion(b)
		p.Reach(11, 0x10, 100)
		b.counts("1,[p_7,t_10,2]")
		b.ask(": proc_detach([p_7])")
		b.counts("1,[p_7,t_10,2]")
	})
}

// TestKeptAndEvicted checks that a request whose program is replaced by trap, and later placed again,
// keeps its values.
func TestKeptAndEvicted(t *testing.T) {
	b, placer, p := kept(t)
	p.Reach(11, 0x10, 100)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])")
	b.runs("c_1", "trap", "a breakpoint of c_3")
	if placer.Stores() != 0 {
		t.Errorf("there are %d stores", placer.Stores())
	}
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,2]")
	b.ask(": csr_delete([c_3]) csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	b.runs("c_1", "fake", "")
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,3]")
	if placer.Stores() != 2 {
		t.Errorf("there are %d stores", placer.Stores())
	}
}

// journal implements engine.Journal and contains the keys of values in memory.
type journal map[string]bool

func (journal) Named(omis.Token, omis.ProcID, int) {}
func (journal) Ended(omis.Token)                   {}
func (j journal) InMemory(key string)              { j[key] = true }
func (j journal) Unkept(key string)                { delete(j, key) }

// TestValuesInMemoryAreRecorded checks that the journal has the keys of values that a SIGKILL of the
// monitor would lose, before the monitor has such a value and until the object is deleted.
func TestValuesInMemoryAreRecorded(t *testing.T) {
	b, _, p := startPlacing(t)
	j := make(journal)
	b.engine.SetJournal(j)
	measureKept(b)
	p.Reach(11, 0x10, 100)
	if len(j) != 0 {
		t.Errorf("the journal has %v, want no key: a program has all values", j)
	}
	b.ask("thread_reached_addr([],0x20) : print([])")
	b.ask(": csr_enable([c_3])")
	b.runs("c_1", "trap", "c_2, which opens or closes the same intervals")
	if !j["count"] || !j["time"] {
		t.Errorf("the journal has %v, want count and time", j)
	}
	b.ask(": csr_delete([c_3]) csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	b.runs("c_1", "fake", "")
	if !j["count"] || !j["time"] {
		t.Errorf("the journal has %v, want count and time: the monitor still has the former values", j)
	}
	b.ask(": csr_delete([c_1,c_2]) pa_counter_delete([pa_c_1])")
	if j["count"] || !j["time"] {
		t.Errorf("the journal has %v, want only time", j)
	}
	b.engine.RecallLoss("other", time.Unix(7, 0))
	if _, err := b.engine.Settle(); err != nil {
		t.Fatal(err)
	}
	if lost, err := b.tool.Keep("pa_t_1", "other"); err != nil || !lost.IsZero() {
		t.Errorf("lost at %v, %v, want no loss: Settle forgets the losses of keys that no object has", lost, err)
	}
}

// TestLevelsInMemoryAreRecorded checks that the journal has the key of a timer of levels, which only the
// monitor can read, before it has a value.
func TestLevelsInMemoryAreRecorded(t *testing.T) {
	b, _, _ := startPlacing(t)
	j := make(journal)
	b.engine.SetJournal(j)
	b.ask(`: pa_timer_create()`)
	if _, err := b.tool.Keep("pa_t_1", "level"); err != nil {
		t.Fatal(err)
	}
	b.ask(`thread_reached_addr([],0x10) : pa_timer_take_level([pa_t_1],"threads")`)
	b.ask(": csr_enable([c_1])")
	b.runs("c_1", "trap", "pa_timer_take_level cannot be done outside of the monitor")
	if !j["level"] {
		t.Errorf("the journal has %v, want level", j)
	}
}
