package landing

import (
	"cmp"
	"slices"

	"mirador/omis/code/x86/branch"
)

// edge is a possible direct branch, both ends as offsets from the beginning of the code.
type edge struct{ to, from uint32 }

// Branches returns the places of possible direct branches, including calls, with an
// offset of four bytes to the beginning of a function; ok is false if the file can no longer be read.
func (m *Module) Branches(to uint64) (from []uint64, ok bool) {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	if !m.collected {
		err := m.mapped(func(s *scan) error {
			m.branches = m.entering(s.code.bytes)
			return nil
		})
		if err != nil {
			return nil, false
		}
		m.collected = true
	}
	i, _ := slices.BinarySearchFunc(m.branches, to, func(e edge, to uint64) int { return cmp.Compare(uint64(e.to), to) })
	for ; i < len(m.branches) && uint64(m.branches[i].to) == to; i++ {
		from = append(from, uint64(m.branches[i].from))
	}
	return from, true
}

// entering lists the branches to the beginnings of functions.
func (m *Module) entering(code []byte) (list []edge) {
	branch.Each(code, func(from, to int) {
		if s, ok := m.symbol(uint64(to)); ok && s.begin == uint64(to) {
			list = append(list, edge{uint32(to), uint32(from)})
		}
	})
	slices.SortFunc(list, func(a, b edge) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	return slices.Clip(list)
}
