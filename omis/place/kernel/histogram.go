//go:build linux && amd64

package kernel

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// countInBucket counts the duration in R1 in the bucket that program.BucketOf tells. How far it
// has to be shifted to the right, until eight is the greatest power of two in it, is found
// by halves.
func countInBucket(f *form, name string) asm.Instructions {
	if f.buckets == 0 {
		return nil
	}
	code := asm.Instructions{asm.Mov.Imm(asm.R2, 0)}
	for _, by := range []int32{32, 16, 8, 4, 2, 1} {
		less := fmt.Sprint(name, "by", by)
		code = append(code,
			asm.Mov.Reg(asm.R3, asm.R1), asm.RSh.Imm(asm.R3, by),
			asm.JLT.Imm(asm.R3, 8, less),
			asm.Mov.Reg(asm.R1, asm.R3), asm.Add.Imm(asm.R2, by),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(less))
	}
	last := int32(f.buckets - 1)
	return append(code,
		asm.LSh.Imm(asm.R2, 3), asm.Add.Reg(asm.R1, asm.R2),
		asm.JLE.Imm(asm.R1, last, name+"bucket"),
		asm.Mov.Imm(asm.R1, last),
		asm.LSh.Imm(asm.R1, 3).WithSymbol(name+"bucket"),
		asm.Add.Reg(asm.R1, rowAt),
		asm.LoadMem(asm.R2, asm.R1, rowBuckets, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, rowBuckets, asm.R2, asm.DWord))
}

// clearBuckets stores R1, which is 0, in all of them.
func clearBuckets(f *form) (code asm.Instructions) {
	for i := range f.buckets {
		code = append(code, asm.StoreMem(rowAt, int16(rowBuckets+8*i), asm.R1, asm.DWord))
	}
	return code
}

func (r row) distribution() program.Distribution {
	counts := make([]uint64, r.form.buckets)
	for i := range counts {
		counts[i] = r.word(rowBuckets + 8*i)
	}
	return program.DistributionOf(counts)
}

var _ program.HistogramStore = (*store)(nil)

// Histograms: see program.HistogramStore.
func (s *store) Histograms() ([]program.Histogram, error) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	s.pool.discover()
	all := slices.Clone(s.past)
	for _, n := range s.rows {
		d, ok, err := s.spread(n)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
	list := make([]program.Histogram, len(all))
	for i := range all {
		list[i] = program.Histogram{Row: all[i].Row, Buckets: all[i].buckets}
	}
	return list, nil
}

// spread reads a row with its distribution, which comes first: so the row knows of all
// that is in it. There is no reset meanwhile. The caller holds the pool's lock.
func (s *store) spread(n uint32) (d dated, ok bool, err error) {
	copied, err := s.copy(n)
	if err != nil || copied.at(rowEpoch) != s.word(cellEpoch) {
		return d, false, err
	}
	d.buckets = s.pool.row(n).distribution()
	if copied, err = s.copy(n); err != nil {
		return d, false, err
	}
	d.Row, d.first = copied.decode(s.pool.form.kind), copied.at(rowFirst)
	d.Alive = s.target.wasAlive(copied.key().thread())
	return d, true, nil
}
