package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"mirador/omis"
)

// unified joins identical results for several objects. The groups have the order of their first results.
func unified(results omis.ServiceResult) omis.ServiceResult {
	if len(results) < 2 {
		return results
	}
	type place struct {
		at    int
		alone bool // it owns its list of objects
	}
	index := make(map[uint64]place, len(results))
	kept := results[:0]
	d := digest{seed: maphash.MakeSeed()}
	for i := range results {
		r := results[i]
		if len(r.Objects) == 0 {
			kept = append(kept, r)
			continue
		}
		sum := d.of(&r)
		p, seen := index[sum]
		if seen && identical(&kept[p.at], &r) {
			all := kept[p.at].Objects
			if p.alone {
				all = slices.Clip(all)
				index[sum] = place{at: p.at}
			}
			kept[p.at].Objects = append(all, r.Objects...)
			continue
		}
		if !seen {
			index[sum] = place{len(kept), true}
		}
		kept = append(kept, r)
	}
	return kept
}

// digest distinguishes results, so that not every pair must be compared.
type digest struct {
	seed maphash.Seed
	b    []byte
}

func (d *digest) of(r *omis.ObjectResult) uint64 {
	d.b = d.b[:0]
	d.number(uint64(r.Status))
	d.text(r.Msg)
	d.values(r.Values)
	return maphash.Bytes(d.seed, d.b)
}

func (d *digest) values(vs []omis.Value) {
	d.number(uint64(len(vs)))
	for i := range vs {
		v := &vs[i]
		d.b = append(d.b, byte(v.Kind))
		switch v.Kind {
		case omis.KindInt:
			d.number(v.N)
		case omis.KindFloat:
			d.number(math.Float64bits(v.Float))
		case omis.KindList:
			d.values(v.List)
		default:
			d.text(v.Str)
		}
	}
}

func (d *digest) number(n uint64) { d.b = binary.LittleEndian.AppendUint64(d.b, n) }

func (d *digest) text(s string) {
	d.number(uint64(len(s)))
	d.b = append(d.b, s...)
}

// identical reports whether two results differ only in their objects.
func identical(a, b *omis.ObjectResult) bool {
	return a.Status == b.Status && a.Msg == b.Msg && slices.EqualFunc(a.Values, b.Values, sameValue)
}

func sameValue(a, b omis.Value) bool {
	return a.Kind == b.Kind && a.Neg == b.Neg && a.N == b.N && math.Float64bits(a.Float) == math.Float64bits(b.Float) &&
		a.Str == b.Str && slices.EqualFunc(a.List, b.List, sameValue)
}
