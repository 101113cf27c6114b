package pa

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// Who reads many counters or timers has all their stores read with one look. Meanwhile
// none of the objects is locked: one that was changed is read once more, by itself. Nor
// is a lock taken to find their stores, since nothing else can be fetched from memory
// while a processor waits for one that is not in its cache.

// measure is what reads many counters or timers.
type measure interface {
	// inStores are the stores where all its rows are, as it shows them now; nil: it has
	// rows elsewhere, or is about to change.
	inStores() *shown
	// appendFed adds the values of a row of a store.
	appendFed(list []omis.Value, r *service.Row) []omis.Value
	values(level int64) ([]omis.Value, error)
}

var _, _ measure = (*counter)(nil), (*timer)(nil)

// part is one of many objects.
type part struct {
	measure
	shown  *shown
	stores int // that are to be read yet
	failed bool
}

// most is how many objects are read with one look: what is known of them stays in the
// processor's cache until they are answered for.
const most = 500

// collection is the reading of many objects.
type collection struct {
	parts  []part // those of this look
	next   int
	stores []service.Store
	rows   []service.Row // of the next part, as far as they are read, where it has several stores
	left   int           // objects that are not answered for yet
	answer func(n int, values []omis.Value, err error)

	// What the last ones have in common that were not answered for yet.
	count int
	like  measure
	fed   []service.Row

	room []omis.Value
}

// collect is readCounter, or readTimer, for many.
func collect(_ *service.Call, count int, object func(i int) any, answer func(n int, values []omis.Value, err error)) {
	g := &collection{parts: make([]part, 0, min(count, most)), left: count, answer: answer}
	for from := 0; from < count; from += most {
		g.parts, g.next = g.parts[:0], 0
		for i := from; i < min(from+most, count); i++ {
			g.parts = append(g.parts, part{measure: object(i).(measure)})
		}
		g.findStores()
		g.read()
	}
	g.flush()
}

// findStores lists the stores of the objects of this look. Short loops have the processor
// fetch what it finds for several objects at the same time.
func (g *collection) findStores() {
	for i := range g.parts {
		g.parts[i].shown = g.parts[i].inStores()
	}
	g.stores = g.stores[:0]
	for i := range g.parts {
		p := &g.parts[i]
		if p.shown != nil {
			g.stores = append(append(g.stores, p.shown.first), p.shown.more...)
			p.stores = 1 + len(p.shown.more)
		}
	}
}

// read reads the objects of this look.
func (g *collection) read() {
	if len(g.stores) > 0 {
		if reader, able := g.stores[0].(service.ManyReader); able {
			reader.ReadMany(g.stores, g.take)
		}
	}
	for g.next < len(g.parts) {
		g.alone()
	}
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
	if p.failed || !areApart(rows) || p.inStores() != p.shown {
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
	g.left--
	g.next++
}

// flush answers for those that were not answered for yet.
func (g *collection) flush() {
	if g.count == 0 {
		return
	}
	g.answer(g.count, g.words(), nil)
	g.left -= g.count
	g.count = 0
}

// words are the values of an answer.
func (g *collection) words() []omis.Value {
	const most, block = 9, 512 // values of a row, and as many as are made at a time
	if need := 2 + most*len(g.fed); cap(g.room)-len(g.room) < need {
		g.room = make([]omis.Value, 0, max(need, min(block, need*g.left)))
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
