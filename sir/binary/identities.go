package binary

import (
	"hash/maphash"
	"path"
	"strconv"
)

// identities assigns a unique id to every unit. Most ids are the program and the symbol; only the others are
// kept, because a large program has hundreds of thousands of units.
type identities struct {
	base  string // with the colon
	funcs []symbol
	plain table          // units whose ids are base and symbol
	odd   map[int]string // the other ids, by units, without base
	byOdd map[string]int
}

func newIdentities(base string, funcs []symbol) *identities {
	ids := &identities{base: printable(base) + ":", funcs: funcs, plain: newTable(len(funcs)), odd: map[int]string{}, byOdd: map[string]int{}}
	shared := shared(funcs)
	used := map[string]int{} // ids, and of those with a number the last one
	uses := func(id string) int {
		if n, ok := used[id]; ok {
			return n
		}
		if ids.plain.find(funcs, id) >= 0 {
			return 1
		}
		return 0
	}
	for i := range funcs {
		f := &funcs[i]
		if !f.isUnit() {
			continue
		}
		id := printable(f.name)
		switch {
		case f.version != "":
			id += "@" + printable(f.version)
		case f.local && shared[f.name] > 1 && f.file != "":
			id += "~" + printable(path.Base(f.file))
		}
		n := uses(id)
		if n == 0 && id == f.name {
			ids.plain.add(funcs, i)
			continue
		}
		if n > 0 {
			next := id
			for uses(next) > 0 {
				n++
				next = id + "~" + strconv.Itoa(n)
			}
			used[id] = n
			id = next
		}
		used[id] = 1
		ids.odd[i], ids.byOdd[id] = id, i
	}
	return ids
}

// shared returns the number of functions with the symbol of a local one.
func shared(funcs []symbol) map[string]int {
	n := map[string]int{}
	for i := range funcs {
		if funcs[i].local {
			n[funcs[i].name] = 0
		}
	}
	for i := range funcs {
		if k, ok := n[funcs[i].name]; ok {
			n[funcs[i].name] = k + 1
		}
	}
	return n
}

// of returns the id of a unit.
func (ids *identities) of(i int) string {
	if id, ok := ids.odd[i]; ok {
		return ids.base + id
	}
	return ids.base + ids.funcs[i].name
}

// find returns the unit with an id, less its base, -1 if there is none.
func (ids *identities) find(own string) int {
	if i, ok := ids.byOdd[own]; ok {
		return i
	}
	return ids.plain.find(ids.funcs, own)
}

// table finds functions by their symbols. It is a map without its keys.
type table struct {
	seed  maphash.Seed
	slots []uint32 // 0, or the function's number plus one
}

func newTable(n int) table {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return table{maphash.MakeSeed(), make([]uint32, size)}
}

// slot returns the slot of a symbol, or the free one for it.
func (t *table) slot(funcs []symbol, name string) *uint32 {
	for at := maphash.String(t.seed, name); ; at++ {
		s := &t.slots[at%uint64(len(t.slots))]
		if *s == 0 || funcs[*s-1].name == name {
			return s
		}
	}
}

func (t *table) add(funcs []symbol, i int) { *t.slot(funcs, funcs[i].name) = uint32(i + 1) }

func (t *table) find(funcs []symbol, name string) int { return int(*t.slot(funcs, name)) - 1 }
