package pa

import (
	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

var _, _, _ service.Folder = (*counter)(nil), (*timer)(nil), (*integrator)(nil)

// Fold implements service.Folder.
func (c *counter) Fold(e service.Ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = fold(c.rows, c.byThread, e, func(r *count) owner { return r.owner },
		func(o owner) *count { return &count{owner: o} }, func(sum, r *count) { sum.value += r.value })
}

// Fold implements service.Folder.
func (t *timer) Fold(e service.Ended) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = fold(t.rows, t.byThread, e, func(r *row) owner { return r.owner },
		func(o owner) *row { return &row{owner: o} }, (*row).join)
}

// Fold implements service.Folder.
func (g *integrator) Fold(e service.Ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rows = fold(g.rows, g.byThread, e, func(r *values) owner { return r.owner },
		func(o owner) *values { return &values{owner: o} }, func(sum, r *values) { sum.join(*r) })
}

// fold adds up the oldest rows of ended threads in one row, which names no thread and
// comes first. It deletes the added rows from byThread and returns the remaining ones.
func fold[R any](rows []R, byThread map[owner]R, e service.Ended, of func(R) owner, begin func(owner) R, join func(sum, r R)) []R {
	nobody := owner{e.Proc, e.Nobody}
	hasEnded := func(r R) bool {
		o := of(r)
		return o.proc == e.Proc && o.thread != omis.Undefined && !e.Lives(o.thread)
	}
	ended := 0
	for _, r := range rows {
		if hasEnded(r) {
			ended++
		}
	}
	if !program.TooManyEnded(ended, 1) {
		return rows
	}
	sum := begin(nobody)
	left := []R{sum}
	for fold := ended - program.RowsOfEnded(1); len(rows) > 0; rows = rows[1:] {
		r := rows[0]
		if fold == 0 || !hasEnded(r) {
			left = append(left, r)
			continue
		}
		fold--
		join(sum, r)
		delete(byThread, of(r))
	}
	byThread[nobody] = sum
	return left
}
