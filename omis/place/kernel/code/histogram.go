//go:build linux && amd64

package code

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// countInBucket adds 1 to the bucket of the duration in R1: see program.BucketOf. By binary search it finds
// how far the duration must be shifted to the right to be less than 16.
func countInBucket(f *Form, name string) asm.Instructions {
	if f.Buckets == 0 {
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
	last := int32(f.Buckets - 1)
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

// clearBuckets stores R1, which is 0, in all buckets.
func clearBuckets(f *Form) (code asm.Instructions) {
	for i := range f.Buckets {
		code = append(code, asm.StoreMem(rowAt, int16(rowBuckets+8*i), asm.R1, asm.DWord))
	}
	return code
}

// Distribution returns the buckets of the row.
func (r Row) Distribution() program.Distribution {
	counts := make([]uint64, r.Form.Buckets)
	for i := range counts {
		counts[i] = r.Word(rowBuckets + 8*i)
	}
	return program.DistributionOf(counts)
}
