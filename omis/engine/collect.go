package engine

import (
	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Who reads ten thousand counters wants to wait for memory, not for the monitor: their
// stores are read with one look, and what lies between is made once for all of them.

// collecting makes a batch of what an extension does for many objects.
func collecting(do service.Collect) func(*execution, *call, []object) omis.ServiceResult {
	return func(x *execution, c *call, objs []object) (results omis.ServiceResult) {
		named := tokens(objs)
		object := func(i int) any { return objs[i].(*item).value }
		do(&service.Call{Args: c.args, Event: x.occ, Scope: x}, len(objs), object, func(n int, values []omis.Value, err error) {
			r := omis.ObjectResult{Status: omis.OK, Values: values}
			if err != nil {
				r = failure(err)
			}
			r.Objects, named = named[:n:n], named[n:]
			results = append(results, r)
		})
		return results
	}
}

var _ service.ManyReader = (*feed)(nil)

// manyRows is memory for rows of many stores.
type manyRows struct {
	stores []program.Store
	rows   []program.Row
	ends   []int
	lent   []service.Row
}

// ReadMany: see service.ManyReader.
func (f *feed) ReadMany(list []service.Store, each func(i int, rows []service.Row, err error)) {
	room := f.e.rooms.Get().(*manyRows)
	defer f.e.rooms.Put(room)
	for from := 0; from < len(list); {
		n := alike(list[from:])
		f.e.readAlike(list[from:from+n], room, func(i int, rows []service.Row, err error) { each(from+i, rows, err) })
		from += n
	}
	clear(room.stores[:cap(room.stores)]) // they are not to outlive their owners
}

// most is how many stores are read with one look: what is read of them stays in the
// processor's cache until it is answered for, and needs no new memory.
const most = 500

// alike is how many of the first stores are of one placement, as far as they are read
// with one look.
func alike(list []service.Store) int {
	list = list[:min(len(list), most)]
	first := list[0].(*feed).placer
	for i, s := range list {
		if s.(*feed).placer != first {
			return i
		}
	}
	return len(list)
}

// readAlike reads stores of one placement.
func (e *Engine) readAlike(list []service.Store, room *manyRows, each func(i int, rows []service.Row, err error)) {
	reader, able := list[0].(*feed).placer.(program.ManyReader)
	if able {
		room.stores = room.stores[:0]
		for _, s := range list {
			room.stores = append(room.stores, s.(*feed).store)
		}
		var err error
		room.rows, room.ends, err = reader.AppendRows(room.stores, room.rows[:0], room.ends[:0])
		able = err == nil
	}
	if !able {
		for i, s := range list {
			rows, err := s.Rows()
			each(i, rows, err)
		}
		return
	}
	last, from := named{reg: e.reg}, 0
	for i, s := range list {
		room.lent = s.(*feed).appendNamed(room.lent[:0], room.rows[from:room.ends[i]], &last)
		each(i, room.lent, nil)
		from = room.ends[i]
	}
}
