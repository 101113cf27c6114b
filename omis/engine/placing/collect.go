package placing

import (
	"mirador/omis/program"
	"mirador/omis/service"
)

// The stores of ten thousand counters are read by one call of the placement for many of them, into memory
// that is used again.

var _ service.ManyReader = (*feed)(nil)

// manyRows is memory to read many stores.
type manyRows struct {
	stores []program.Store
	rows   []program.Row
	ends   []int
	lent   []service.Row
}

// ReadMany: see service.ManyReader.
func (f *feed) ReadMany(list []service.Store, each func(i int, rows []service.Row, err error)) {
	room := f.x.rooms.Get().(*manyRows)
	defer f.x.rooms.Put(room)
	for from := 0; from < len(list); {
		n := alike(list[from:])
		f.x.readAlike(list[from:from+n], room, func(i int, rows []service.Row, err error) { each(from+i, rows, err) })
		from += n
	}
	clear(room.stores[:cap(room.stores)]) // so that the garbage collector can free them
}

// most is how many stores are read together. Their rows stay in the processor's cache until they are used,
// and need no new memory.
const most = 500

// alike returns how many of the first stores are of one placement, at most most.
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
func (x *Placing) readAlike(list []service.Store, room *manyRows, each func(i int, rows []service.Row, err error)) {
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
	last, from := named{}, 0
	for i, s := range list {
		room.lent = s.(*feed).appendNamed(room.lent[:0], room.rows[from:room.ends[i]], &last)
		each(i, room.lent, nil)
		from = room.ends[i]
	}
}
