package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
)

// region counts and times the function from 0x10 to 0x20 by a new counter and a new timer, with the
// requests of the gateway.
func region(b *bench) {
	b.Helper()
	b.must(": pa_counter_create() pa_timer_create()")
	watchRegion(b)
}

// watchRegion counts and times the function by pa_c_1 and pa_t_1.
func watchRegion(b *bench) {
	b.Helper()
	b.must("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])",
		"thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])", ": csr_enable([c_1,c_2])")
}

// timeRegion times the function by pa_t_1.
func timeRegion(b *bench) {
	b.Helper()
	b.must("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])",
		"thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])", ": csr_enable([c_1,c_2])")
}

func TestRegion(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	region(b)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x10, 50)
	p.Reach(11, 0x20, 50)
	p.Reach(12, 0x10, 100)
	p.Reach(11, 0x20, 100)
	r := b.reply(": pa_counter_read([pa_c_1]) pa_timer_read([pa_t_1])")
	if got := strings.SplitAfter(b.ask(": pa_counter_read([pa_c_1])"), "\n")[1]; got != "1 OMIS_OK [pa_c_1] 2,[p_1,t_1,2,p_1,t_2,1]\n" {
		t.Error(got)
	}
	rows := r[2][0].Values[1].List
	if rows[2].N != 2 || rows[3].Float <= rows[7].Float/2 || rows[9+2].N != 0 {
		t.Errorf("timer rows %v", rows)
	}
	for _, request := range []string{": pa_counter_reset([]) pa_timer_reset([])", ": csr_disable([])"} {
		b.ask(request)
	}
	p.Reach(11, 0x10, 100)
	b.want(": pa_counter_read([]) pa_timer_read([])", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 0,[]\n2 OMIS_OK [pa_t_1] 0,[]\n")
	b.ask(": csr_delete([]) pa_counter_delete([]) pa_timer_delete([])")
	b.want(": pa_counter_read([pa_c_1])", "0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [pa_c_1] \"no such pa_c token: pa_c_1\"\n")
	if p.Watches() != 0 {
		t.Errorf("%d watches are left", p.Watches())
	}
}

// TestSumsOfCountersAndTimers compares the sums for processes and the totals with the rows of
// threads.
func TestSumsOfCountersAndTimers(t *testing.T) {
	b := start(t, pa.New())
	p, q := b.node.Add(1, []string{"a"}, 11, 12), b.node.Add(2, []string{"b"}, 21)
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"") pa_counter_create() pa_timer_create()`)
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([],2) pa_timer_start([])")
	b.ask("thread_reached_addr([],0x20) : pa_timer_stop([])")
	b.ask(": csr_enable([])")
	for range 3 {
		p.Reach(11, 0x10, 64)
		p.Reach(11, 0x20, 64)
		q.Reach(21, 0x10, 64)
	}
	p.Reach(12, 0x10, 64)
	p.Reach(12, 0x20, 64)
	b.want(": pa_counter_sum([],0) pa_counter_sum([],1) pa_counter_sum([],2) pa_counter_sum([],3)",
		"0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 3,[p_1,t_1,6,p_2,t_3,6,p_1,t_2,2]\n2 OMIS_OK [pa_c_1] 2,[p_1,u_0,8,p_2,u_0,6]\n"+
			"3 OMIS_OK [pa_c_1] 1,[u_0,u_0,14]\n4 OMIS_PARAMETER_ERROR(28) [pa_c_1] \"the level is 0 (threads), 1 (processes) or 2 (in total)\"\n")
	rows := func(service string, level int) [][]omis.Value {
		list := b.reply(fmt.Sprintf(": %s([],%d)", service, level))[1][0].Values[1].List
		return slices.Collect(slices.Chunk(list, 9))
	}
	threads, procs, total := rows("pa_timer_sum", 0), rows("pa_timer_sum", 1), rows("pa_timer_sum", 2)
	if len(threads) != 3 || len(procs) != 2 || len(total) != 1 {
		t.Fatalf("%d rows by threads, %d by processes, %d in total", len(threads), len(procs), len(total))
	}
	number := func(r []omis.Value, i int) float64 { f, _ := r[i].Number(); return f }
	one, two := threads[0], threads[2]
	for _, sum := range [][]omis.Value{procs[0], total[0]} {
		for i, want := range map[int]float64{
			2: 4, 3: number(two, 3), 4: number(one, 4) + number(two, 4), 5: number(one, 5) + number(two, 5),
			6: min(number(one, 6), number(two, 6)), 7: max(number(one, 7), number(two, 7)),
		} {
			if got := number(sum, i); math.Abs(got-want) > 1e-9*want {
				t.Errorf("component %d is %g, want %g", i, got, want)
			}
		}
	}
	exact := b.reply(": pa_timer_exact([],0) pa_timer_exact([],2) pa_timer_exact([],3)")
	rowsOf := func(i int) [][]omis.Value {
		return slices.Collect(slices.Chunk(exact[i][0].Values[1].List, 11))
	}
	apart, all := rowsOf(1), rowsOf(2)
	if len(apart) != 3 || len(all) != 1 {
		t.Fatalf("%d exact rows by threads, %d in total", len(apart), len(all))
	}
	// The hits of the test are less than four seconds apart, so the upper words are 0.
	for _, i := range []int{2, 5, 7, 10} { // count, sum_low, sumsq_low, unfinished
		if sum := apart[0][i].N + apart[1][i].N + apart[2][i].N; all[0][i].N != sum {
			t.Errorf("exact component %d is %d in total, %d by threads", i, all[0][i].N, sum)
		}
	}
	if got, want := float64(all[0][5].N)/1e9, number(total[0], 4); math.Abs(got-want) > 1e-9*want || got == 0 {
		t.Errorf("the exact sum is %g s, want %g", got, want)
	}
	if status := exact[3][0].Status; status != omis.ParameterError {
		t.Errorf("level 3 has the status %v", status)
	}
	// In the second process, each start after the first drops an open interval.
	if number(procs[1], 2) != 0 || number(total[0], 8) != 2 {
		t.Errorf("rows %v and %v", procs[1], total[0])
	}
}

// TestCountsAreExact checks that the hits of several processes at the same time are all counted.
func TestCountsAreExact(t *testing.T) {
	b := start(t, pa.New())
	const procs, hits = 8, 2000
	var owners sync.WaitGroup
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([],1)")
	b.ask(": csr_enable([])")
	for pid := 1; pid <= procs; pid++ {
		p := b.node.Add(pid, nil, pid)
		if err := b.reply(`: proc_attach3([],` + string(rune('0'+pid)) + `,"")`).Err(); err != nil {
			t.Fatal(err)
		}
		owners.Go(func() {
			for range hits {
				p.Reach(pid, 0x10, 0)
			}
		})
	}
	owners.Wait()
	rows := b.reply(": pa_counter_read([])")[1][0].Values[1].List
	if len(rows) != 3*procs {
		t.Fatalf("rows %v", rows)
	}
	for i := 2; i < len(rows); i += 3 {
		if rows[i].N != hits {
			t.Errorf("%s counts %d, want %d", rows[i-1].Str, rows[i].N, hits)
		}
	}
}

// TestDeletedCounter checks that executions of a request whose counter was deleted reply with an
// error, or are counted as failed if no callback receives the reply.
func TestDeletedCounter(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"") pa_counter_create()`)
	c := b.listen("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)", omis.DontReturnOK|omis.DontReturnEnDis)
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask(": csr_enable([])")
	p.Reach(11, 0x10, 0)
	c.quiet()
	b.ask(": pa_counter_delete([pa_c_1])")
	p.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_UNKNOWN_OBJECT(24) [pa_c_1] \"no such pa_c token: pa_c_1\"\n")
	if x, err := b.tool.State("c_2"); err != nil || x.Failed != 1 {
		t.Errorf("state %+v, %v", x, err)
	}
}

func TestContextParameterAsValue(t *testing.T) {
	b := start(t, pa.New())
	b.ask(": pa_counter_create() user_event_create()")
	b.ask("user_event_has_been_raised(e_1) : pa_counter_add([pa_c_1],$par1)")
	b.ask(`: csr_enable([]) user_event_raise(e_1,[40],0) user_event_raise(e_1,[2],0) user_event_raise(e_1,["x"],0)`)
	b.want(": pa_counter_read([])", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 1,[u_0,u_0,42]\n")
}

func TestIntervals(t *testing.T) {
	b := start(t, pa.New())
	b.ask(": pa_counter_create()")
	b.ask("pa_interval_elapsed(1) : pa_counter_add([],1)")
	b.ask("pa_interval_elapsed(1) : pa_counter_add([],1000000) csr_delete([$csr])")
	b.ask("pa_interval_elapsed(0) : print([])")
	if got := b.ask(": csr_enable([])"); !strings.Contains(got, "an interval is 1 to") {
		t.Error(got)
	}
	value := func() uint64 {
		if rows := b.reply(": pa_counter_read([])")[1][0].Values[1].List; len(rows) > 0 {
			return rows[2].N
		}
		return 0
	}
	eventually(t, func() bool { return value() > 1000002 && value() < 2000000 })
	b.ask(": {csr_disable([c_1])}") // the locked list waits for all other lists
	last := value()
	time.Sleep(5 * time.Millisecond)
	if value() != last {
		t.Error("the request was executed after it was disabled")
	}
}

func BenchmarkValue(b *testing.B) {
	w := start(b, pa.New())
	p := w.node.Add(1, nil, 11)
	w.ask(`: proc_attach3([],1,"")`)
	region(w)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	b.ReportAllocs()
	for b.Loop() {
		w.reply(": pa_counter_read([pa_c_1]) pa_timer_read([pa_t_1])")
	}
}

// caught is a node that records the handler of the latest watch.
type caught struct {
	*fake.Node
	handle func(*node.Hit)
}

func (c *caught) Watch(w node.Watch, handle func(*node.Hit)) (func() error, error) {
	if w.Event == node.EventReachedAddr {
		c.handle = handle
	}
	return c.Node.Watch(w, handle)
}

// BenchmarkHit measures the time of a hit on the goroutine that owns the process.
func BenchmarkHit(b *testing.B) {
	n := &caught{Node: fake.New("here")}
	e, err := engine.New(n, slog.New(slog.DiscardHandler), pa.New())
	if err != nil {
		b.Fatal(err)
	}
	p := n.Add(1, nil, 11)
	for _, request := range []string{
		`: proc_attach3([],1,"") pa_counter_create() pa_timer_create()`,
		"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])",
		": csr_enable([c_1])",
	} {
		if r, err := e.Tool("test").Request(context.Background(), request, nil, 0); err != nil || r.Err() != nil {
			b.Fatal(err, r.Err())
		}
	}
	hit := node.Hit{Proc: p.ID, TID: 11, Addr: 0x10, SP: 64, Now: n.Now}
	b.ReportAllocs()
	for b.Loop() {
		n.handle(&hit)
	}
	if err := errors.Join(e.Close(context.Background()), n.Close(context.Background())); err != nil {
		b.Fatal(err)
	}
}
