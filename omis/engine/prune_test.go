package engine_test

import (
	"slices"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/program"
)

// brief creates threads one after the other; each calls the region and ends.
func brief(p *fake.Process, from, threads int) {
	for tid := from; tid < from+threads; tid++ {
		p.Spawn(11, tid)
		call(p, tid)
		p.EndThread(tid)
	}
}

// call makes a thread call the region.
func call(p *fake.Process, tid int) {
	p.Reach(tid, 0x10, 100)
	p.Reach(tid, 0x20, 100)
}

// rowsOf returns the rows in the reply to a request; each has width values.
func (b *bench) rowsOf(request string, width int) [][]omis.Value {
	b.Helper()
	return slices.Collect(slices.Chunk(b.reply(request)[1][0].Values[1].List, width))
}

// totals returns the number of rows, and the sums of a counter's calls and of a timer's intervals.
func (b *bench) totals() (rows int, calls, intervals int64) {
	b.Helper()
	counted, timed := b.rowsOf(": pa_counter_read([pa_c_1])", 3), b.rowsOf(": pa_timer_read([pa_t_1])", 9)
	for _, r := range counted {
		calls += int64(r[2].N)
	}
	for _, r := range timed {
		intervals += int64(r[2].N)
	}
	return max(len(counted), len(timed)), calls, intervals
}

// TestRowsOfEndedThreadsAreAddedUp checks that the number of rows of ended threads is limited and that no
// count is lost, and that a running thread keeps its row although it is older.
func TestRowsOfEndedThreadsAreAddedUp(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	region(b)
	call(p, 12)
	const threads = 20_000
	brief(p, 1000, threads)
	n := threads
	most := program.RowsOfEnded(1)*5/4 + 1<<12 + 4 // 1<<12 threads may end before the engine folds rows
	for deadline := time.Now().Add(time.Minute); ; n++ {
		rows, calls, intervals := b.totals()
		if calls != int64(n)+1 || intervals != int64(n)+1 {
			t.Fatalf("%d calls, %d intervals, want %d", calls, intervals, n+1)
		}
		if rows <= most {
			break
		}
		if time.Sleep(time.Millisecond); time.Now().After(deadline) {
			t.Fatalf("there are %d rows, want no more than %d", rows, most)
		}
		brief(p, 1000+n, 1)
	}
	call(p, 12)
	lasting := slices.IndexFunc(b.rowsOf(": pa_counter_read([pa_c_1])", 3), func(r []omis.Value) bool { return r[1].Token() == "t_2" && r[2].N == 2 })
	if lasting < 0 {
		t.Error("a running thread has lost its row")
	}
}

// TestRowsKeepTheirTokens checks that rows in the stores of a placement keep their tokens after the engine
// has forgotten tokens of ended threads.
func TestRowsKeepTheirTokens(t *testing.T) {
	b, _, p := startPlacing(t)
	region(b)
	const threads = 5000
	brief(p, 1000, threads)
	first := b.rowsOf(": pa_counter_read([pa_c_1])", 3)
	if len(first) != threads {
		t.Fatalf("%d rows", len(first))
	}
	brief(p, 1000+threads, threads)
	for range 3 {
		time.Sleep(10 * time.Millisecond) // the engine removes tokens meanwhile
		again := b.rowsOf(": pa_counter_read([pa_c_1])", 3)
		if len(again) != 2*threads {
			t.Fatalf("%d rows", len(again))
		}
		for i, r := range first {
			if r[1].Token() != again[i][1].Token() {
				t.Fatalf("the token of row %d changed from %s to %s", i, r[1].Token(), again[i][1].Token())
			}
		}
	}
}
