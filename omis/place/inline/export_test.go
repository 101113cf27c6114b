//go:build linux && amd64

package inline

import "mirador/omis"

// Taken is how many slots are, in the process of a store.
func Taken(s omis.Store) int {
	t := s.(*store).target
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meet()
	return len(t.known)
}

// Same is what is told of that many intervals, each of which took as many ticks.
func Same(n int, ticks, tick uint64) omis.Histogram {
	r := record{counts: make([]uint64, omis.Buckets)}
	r.counts[omis.BucketOf(ticks)] = uint64(n)
	each := omis.Uint128{Lo: ticks}
	for range n {
		r.Sum, r.Squares = r.Sum.Add(each), r.Squares.Add(each.Times(ticks))
	}
	r.Count, r.Last, r.Min, r.Max = int64(n), ticks, ticks, ticks
	return spreadIn(&r, tick)
}
