//go:build linux && amd64

package kernel_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// newTrail makes a trace for the programs of a process.
func newTrail(t testing.TB, p *kernel.Placer, id omis.ProcID) program.Trail {
	t.Helper()
	return newStore(t, p, id, program.StoreTraces).(program.Trail)
}

// take takes the records, and checks how many were lost.
func take(t testing.TB, s program.Trail, lost uint64) []program.Record {
	t.Helper()
	list, n, err := s.Take()
	if err != nil || n != lost {
		t.Fatalf("%d records, %d lost (%v), want %d", len(list), n, err, lost)
	}
	return list
}

// Programs at one address with different marks and values have stores of their own.
func TestNotesOfSeveralPrograms(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	one, other := newTrail(t, p, g.ID), newTrail(t, p, g.ID)
	for _, op := range []program.Op{
		{Mark: math.MinInt32, Value: math.MinInt64, Store: one, Room: 1},
		{Mark: math.MaxInt32, Value: math.MaxInt64, Store: one, Room: 1},
		{Mark: -7, Value: -1 << 33, Store: other, Room: 1 << 16},
	} {
		op.Do = program.OpTrace
		place(t, p, g.ID, g.Func["work"], op)
	}
	g.Do("call 50")
	seen := make(map[program.Record]int)
	for _, r := range append(take(t, one, 0), take(t, other, 0)...) {
		if r.TID != g.ID.PID || r.Started != g.ID.Start || !r.Alive || r.Time <= 0 {
			t.Fatalf("record %+v", r)
		}
		seen[program.Record{Mark: r.Mark, Value: r.Value}]++
	}
	for _, want := range []program.Record{{Mark: math.MinInt32, Value: math.MinInt64}, {Mark: math.MaxInt32, Value: math.MaxInt64}, {Mark: -7, Value: -1 << 33}} {
		if seen[want] != 50 {
			t.Errorf("%d records of mark %d and value %d", seen[want], want.Mark, want.Value)
		}
	}
	if n := rows(t, one); len(n) != 1 || n[0].Value != 100 {
		t.Errorf("rows %+v", n)
	}
}

// A trace keeps the newest records that there is room for. A reset removes them, and the number of lost
// ones.
func TestRingsOfNotes(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	for room, kept := range map[int64]int{1: 128, 128: 128, 129: 256, 5000: 8192} {
		s := newTrail(t, p, g.ID)
		if list := take(t, s, 0); len(list) != 0 {
			t.Errorf("%d records of a trace that has no program", len(list))
		}
		place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpTrace, Mark: 1, Store: s, Room: room})
		g.Do("call %d", kept+10)
		list := take(t, s, 10)
		if len(list) != kept {
			t.Errorf("%d records where there is room for %d", len(list), kept)
		}
		for i := range list[1:] {
			if list[i].Time >= list[i+1].Time {
				t.Errorf("record %d is of %d, the next one of %d", i, list[i].Time, list[i+1].Time)
			}
		}
		g.Do("call %d", kept+10)
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
		g.Do("call 5")
		if list := take(t, s, 0); len(list) != 5 {
			t.Errorf("%d records since a reset", len(list))
		}
	}
}

// Records of ended threads are kept when other threads get their rows.
func TestNotesOfEndedThreads(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newTrail(t, p, g.ID)
	place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpTrace, Mark: 1, Store: s, Room: 1 << 14})
	const rounds, threads = 20, 24 // fewer than there are rows, but more than half of them
	for range rounds {
		g.Do("onebyone %d 3", threads)
		if err := p.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	if list := take(t, s, 0); len(list) != 3*rounds*threads {
		t.Errorf("%d records", len(list))
	}
	if list := take(t, s, 0); len(list) != 0 {
		t.Errorf("%d records once more", len(list))
	}
	if n := len(rows(t, s)); n != rounds*threads {
		t.Errorf("%d threads", n)
	}
}

// If records are never read, memory is bounded: of ended threads the newest records are kept, and the
// others are lost.
func TestUnreadNotes(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newTrail(t, p, g.ID)
	place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpTrace, Mark: 1, Store: s, Room: 1 << 14})
	kernel.Unread(s, program.MostUnread)
	const threads = 24 // some of them need the rows of others
	g.Do("onebyone %d 3", threads)
	awaitOneThread(t, g.ID.PID)
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	if list := take(t, s, 3*threads); len(list) != program.MostUnread || list[len(list)-1].Mark != 1 {
		t.Errorf("%d records", len(list))
	}
}

// awaitOneThread waits until the kernel has ended all threads but one: pthread_join returns before that.
func awaitOneThread(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d threads, %v", len(threads), err)
		}
		if len(threads) == 1 {
			return
		}
	}
}

// Hits of threads that find no row are counted as lost records.
func TestNotesWithoutRoom(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newTrail(t, p, g.ID)
	place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpTrace, Mark: 1, Store: s, Room: 1 << 16})
	const threads = 100
	g.Do("together %d 5", threads)
	list, lost, err := s.Take()
	if err != nil || len(list)+int(lost) != 5*threads || len(list) == 0 {
		t.Errorf("%d records, %d lost (%v)", len(list), lost, err)
	}
}
