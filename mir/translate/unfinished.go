package translate

import (
	"maps"
	"slices"

	"mirador/omis"
)

// goroutine identifies a goroutine of a process by the address of its descriptor.
type goroutine struct {
	process omis.Token
	addr    uint64
}

// unfinished has the executions that a thread, or a goroutine, has begun and not ended, the innermost last.
// A goroutine may end them on another thread.
type unfinished struct {
	process, thread omis.Token // of the last record
	goroutine       uint64     // 0: a thread
	last            int64      // time of the last record of a goroutine
	list            []opened
}

type opened struct {
	sp     uint64
	metric int
	taken  taken // values at its beginning
}

// unfinishedOf returns the open executions to which a record of a thread belongs.
func (r *Recorder) unfinishedOf(t *recordedThread) *unfinished {
	if t.goroutine == 0 {
		return &t.own
	}
	g := goroutine{t.process, t.goroutine}
	u := r.goroutines[g]
	if u == nil {
		dropOldest(r.goroutines, func(u *unfinished) int64 { return u.last }) // most of them have ended without leaving the region
		u = &unfinished{process: t.process, goroutine: t.goroutine}
		r.goroutines[g] = u
	}
	u.thread, u.last = t.thread, t.last
	return u
}

// dropOldest drops half of the threads or goroutines if there are too many: those whose last record is oldest.
func dropOldest[K comparable, V any](all map[K]V, last func(V) int64) {
	if len(all) < mostThreads {
		return
	}
	times := make([]int64, 0, len(all))
	for _, v := range all {
		times = append(times, last(v))
	}
	slices.Sort(times)
	median := times[len(times)/2]
	maps.DeleteFunc(all, func(_ K, v V) bool { return last(v) < median })
}

// enter begins an execution. Open executions that began at the same place of the stack or deeper
// have been left by an exception. An event without a place shows nothing about other executions.
func (r *Recorder) enter(t *recordedThread, rec *Record, sp uint64, metric int) {
	u := r.unfinishedOf(t)
	n := len(u.list)
	for n > 0 && sp != 0 && u.list[n-1].sp <= sp {
		n--
	}
	r.cut(u, len(u.list)-n, Abandoned, rec.Time)
	u.list = append(u.list, opened{sp, metric, t.pending.clone()})
	if r.plan.Traced {
		r.emit(t, rec.Time, Entered, metric)
	}
	t.pending.clear()
}

// leave ends the execution that began at the same place of the stack, or the last one of the
// metric.
func (r *Recorder) leave(t *recordedThread, rec *Record, sp uint64, metric int) {
	u := r.unfinishedOf(t)
	n := len(u.list)
	for n > 0 && (u.list[n-1].sp < sp || u.list[n-1].metric != metric) {
		n--
	}
	what := Unmatched
	if r.plan.Gains.ends == atEnd { // no beginning is recorded
		what = Left
	}
	if n > 0 && u.list[n-1].sp == sp {
		what = Left
		r.cut(u, len(u.list)-n, Abandoned, rec.Time)
		if !r.plan.Traced { // else the record of the entry has them
			t.pending.add(u.list[n-1].taken)
		}
		u.list = u.list[:n-1]
	}
	if len(u.list) == 0 {
		delete(r.goroutines, goroutine{t.process, t.goroutine})
	}
	if !r.plan.Traced {
		what = Executed
	}
	r.emit(t, rec.Time, what, metric)
}

// cut ends the innermost n executions.
func (r *Recorder) cut(u *unfinished, n int, what What, at int64) {
	for range n {
		last := u.list[len(u.list)-1]
		u.list = u.list[:len(u.list)-1]
		if !r.plan.Traced {
			continue
		}
		r.found = append(r.found, Execution{Process: u.process, Thread: u.thread, Goroutine: u.goroutine, Time: at, What: what, Metric: last.metric})
	}
}
