package landing

import (
	"cmp"
	"slices"

	"mirador/omis/code/x86/branch"
)

// edge is a possible direct branch, both ends as offsets from the beginning of the code.
type edge struct{ to, from uint32 }

// Branches returns the places of possible direct branches, including calls, with an
// offset of four bytes to the beginning of a function.
func (m *Module) Branches(to uint64) (from []uint64) {
	m.collect.Do(func() {
		branch.Each(m.Code, func(from, to int) {
			if s, ok := m.symbol(uint64(to)); ok && s.begin == uint64(to) {
				m.branches = append(m.branches, edge{uint32(to), uint32(from)})
			}
		})
		slices.SortFunc(m.branches, func(a, b edge) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
		m.branches = slices.Clip(m.branches)
	})
	i, _ := slices.BinarySearchFunc(m.branches, to, func(e edge, to uint64) int { return cmp.Compare(uint64(e.to), to) })
	for ; i < len(m.branches) && uint64(m.branches[i].to) == to; i++ {
		from = append(from, uint64(m.branches[i].from))
	}
	return from
}
