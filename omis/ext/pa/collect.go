package pa

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// Who reads many counters or timers has all their stores read with one look. Meanwhile
// none of the objects is locked: one that was changed is read once more, by itself.

// measure is what reads many counters or timers.
type measure interface {
	// inStores adds the stores where its rows are to a list, and tells the number of
	// changes so far.
	inStores(list []service.Store) ([]service.Store, uint64)
	// isFed tells that it has no rows but those, after as many changes.
	isFed(changes uint64) bool
	// appendFed adds the values of a row of a store.
	appendFed(list []omis.Value, r *service.Row) []omis.Value
	values(level int64) ([]omis.Value, error)
}

var _, _ measure = (*counter)(nil), (*timer)(nil)

// part is one of many objects.
type part struct {
	measure
	changes uint64
	stores  int // that are to be read yet
	failed  bool
}

// collection is the reading of many objects.
type collection struct {
	parts  []part
	next   int
	rows   []service.Row // of that one, as far as they are read, where it has several stores
	answer func(n int, values []omis.Value, err error)

	// What the last ones have in common that were not answered for yet.
	count int
	like  measure
	fed   []service.Row

	room []omis.Value
}

// collect is readCounter, or readTimer, for many.
func collect(_ *service.Call, objects []any, answer func(n int, values []omis.Value, err error)) {
	g := &collection{parts: make([]part, len(objects)), answer: answer}
	stores := make([]service.Store, 0, len(objects))
	for i, o := range objects {
		p := &g.parts[i]
		before := len(stores)
		p.measure = o.(measure)
		stores, p.changes = p.inStores(stores)
		p.stores = len(stores) - before
	}
	if len(stores) > 0 {
		if reader, able := stores[0].(service.ManyReader); able {
			reader.ReadMany(stores, g.take)
		}
	}
	for g.next < len(g.parts) {
		g.alone()
	}
	g.flush()
}

// take takes the rows of the next store.
func (g *collection) take(_ int, rows []service.Row, err error) {
	for g.parts[g.next].stores == 0 {
		g.alone()
	}
	p := &g.parts[g.next]
	p.failed = p.failed || err != nil
	if p.stores--; p.stores > 0 || len(g.rows) > 0 {
		g.rows = append(g.rows, rows...)
		rows = g.rows
	}
	if p.stores > 0 {
		return
	}
	g.rows = g.rows[:0]
	if p.failed || !areApart(rows) || !p.isFed(p.changes) {
		g.alone()
		return
	}
	if g.count == 0 || !slices.Equal(g.fed, rows) {
		g.flush()
		g.like, g.fed = p.measure, append(g.fed[:0], rows...)
	}
	g.count++
	g.next++
}

// alone reads the next object by itself.
func (g *collection) alone() {
	g.flush()
	values, err := g.parts[g.next].values(byThreads)
	g.answer(1, values, err)
	g.next++
}

// flush answers for those that were not answered for yet.
func (g *collection) flush() {
	if g.count == 0 {
		return
	}
	g.answer(g.count, g.words(), nil)
	g.count = 0
}

// words are the values of an answer.
func (g *collection) words() []omis.Value {
	const most, block = 9, 512 // values of a row, and as many as are made at a time
	if need := 2 + most*len(g.fed); cap(g.room)-len(g.room) < need {
		g.room = make([]omis.Value, 0, max(need, min(block, need*(len(g.parts)-g.next+1))))
	}
	at := len(g.room)
	g.room = append(g.room, omis.Int(int64(len(g.fed))), omis.Value{})
	for i := range g.fed {
		g.room = g.like.appendFed(g.room, &g.fed[i])
	}
	end := len(g.room)
	g.room[at+1] = omis.List(g.room[at+2 : end : end]...)
	return g.room[at : at+2 : at+2]
}
