package pa

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// A request that reads many counters or timers reads all their stores in one pass. None
// of the objects is locked meanwhile: one that changed is read again on its own. Finding
// the stores takes no lock either, because a lock keeps the processor from fetching
// several objects from memory at the same time.

// measure is a counter or a timer, of which collect can read many.
type measure interface {
	// inStores returns the stores that contain all rows of the object at present; nil if
	// it has other rows or is about to change.
	inStores() *shown
	// appendFed appends the values of a store's row to list.
	appendFed(list []omis.Value, r *service.Row) []omis.Value
	values(level int64) ([]omis.Value, error)
}

var _, _ measure = (*counter)(nil), (*timer)(nil)

// part is the state of reading one of many objects.
type part struct {
	measure
	shown  *shown
	stores int // stores that are still to be read
	failed bool
}

// most is the number of objects read in one pass. It is small enough that their data stay
// in the processor's cache until they are answered.
const most = 500

// collection is the state of reading many objects.
type collection struct {
	parts  []part // the objects of this pass
	next   int
	stores []service.Store
	rows   []service.Row // rows read so far of the next part, if it has several stores
	left   int           // number of objects not answered yet
	answer func(n int, values []omis.Value, err error)

	// The last count objects are not answered yet; all have the rows fed.
	count int
	like  measure
	fed   []service.Row

	room []omis.Value
}

// collect does what readCounter and readTimer do, for many objects.
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

// findStores lists the stores of the objects of this pass. Its loops are short, so that
// the processor can fetch several objects from memory at the same time.
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

// read reads the objects of this pass.
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

// take receives the rows of the next store.
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

// alone reads the next object on its own.
func (g *collection) alone() {
	g.flush()
	values, err := g.parts[g.next].values(byThreads)
	g.answer(1, values, err)
	g.left--
	g.next++
}

// flush answers for the objects that are not answered yet.
func (g *collection) flush() {
	if g.count == 0 {
		return
	}
	g.answer(g.count, g.answerValues(), nil)
	g.left -= g.count
	g.count = 0
}

// answerValues returns the values of an answer.
func (g *collection) answerValues() []omis.Value {
	const most, block = 9, 512 // values of a row; values allocated at a time
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
