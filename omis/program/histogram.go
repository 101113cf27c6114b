package program

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A histogram has a bucket for each range of durations: eight of equal width between one
// power of two and the next, and one for each duration below eight. So the width of a
// bucket is at most an eighth of its durations, and finding the bucket of a duration
// takes a few instructions.

const (
	// stepsShift is log2 of the number of buckets between one power of two and the next.
	stepsShift = 3
	// Buckets is the number of buckets. The last one also counts all longer durations, in
	// nanoseconds more than a century.
	Buckets = 480
)

// BucketOf returns the number of the bucket that counts a duration.
func BucketOf(v uint64) int {
	shift := max(bits.Len64(v), stepsShift+1) - stepsShift - 1
	return min(shift<<stepsShift+int(v>>shift), Buckets-1)
}

// BucketRange returns the least and the greatest duration of a bucket.
func BucketRange(n int) (least, most uint64) {
	shift := max(n>>stepsShift-1, 0)
	least = uint64(n-shift<<stepsShift) << shift
	if n == Buckets-1 {
		return least, math.MaxUint64
	}
	return least, least + 1<<shift - 1
}

// Bucket counts the intervals that took at least Least and at most Most nanoseconds.
type Bucket struct{ Least, Most, Count uint64 }

// Distribution lists the buckets that are not empty, ordered by Least. Buckets may
// overlap and have other limits than BucketRange's if they come from several placements,
// or if different costs were subtracted.
type Distribution []Bucket

// Histogram is a row with its distribution. The store reads the distribution first, so
// the row of a running thread may contain a few more intervals.
type Histogram struct {
	Row
	Buckets Distribution
}

// HistogramStore is a Store of StoreHistograms.
type HistogramStore interface {
	Store
	// Histograms returns the rows, as Rows does, with their distributions.
	Histograms() ([]Histogram, error)
}

// DistributionOf returns the distribution in which bucket n counts counts[n] intervals.
func DistributionOf(counts []uint64) (d Distribution) {
	for n, count := range counts {
		if count > 0 {
			least, most := BucketRange(n)
			d = append(d, Bucket{least, most, count})
		}
	}
	return d
}

// Count returns the number of all intervals.
func (d Distribution) Count() (n uint64) {
	for i := range d {
		n += d[i].Count
	}
	return n
}

// AtMost returns the number of intervals that certainly took at most as long as the duration.
func (d Distribution) AtMost(duration uint64) (n uint64) {
	for i := range d {
		if d[i].Most <= duration {
			n += d[i].Count
		}
	}
	return n
}

// Join returns the sum of two distributions.
func (d Distribution) Join(other Distribution) Distribution {
	all := slices.Concat(d, other)
	slices.SortFunc(all, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(a.Least, b.Least), cmp.Compare(a.Most, b.Most))
	})
	return all.merged()
}

// merged combines adjacent buckets that have the same limits.
func (d Distribution) merged() Distribution {
	sum := d[:0]
	for _, b := range d {
		if n := len(sum); n > 0 && sum[n-1].Least == b.Least && sum[n-1].Most == b.Most {
			sum[n-1].Count += b.Count
			continue
		}
		sum = append(sum, b)
	}
	return sum
}

// Without returns the distribution as if each interval were shorter by the given bias, as
// Intervals.Without does: the limits change, the counts do not.
func (d Distribution) Without(nanoseconds int64) Distribution {
	moved := slices.Clone(d)
	for i := range moved {
		b := &moved[i]
		b.Least, b.Most = without(b.Least, nanoseconds), without(b.Most, nanoseconds)
	}
	return moved.merged()
}

// without subtracts a bias from a duration; it returns a result between 0 and the
// greatest uint64.
func without(ns uint64, bias int64) uint64 {
	if bias >= 0 {
		return ns - min(ns, uint64(bias))
	}
	longer, over := bits.Add64(ns, uint64(-bias), 0)
	if over != 0 {
		return math.MaxUint64
	}
	return longer
}

// Within returns the distribution with all limits clamped to least and most, if it is
// known that no interval was shorter or longer.
func (d Distribution) Within(least, most uint64) Distribution {
	narrow := slices.Clone(d)
	for i := range narrow {
		b := &narrow[i]
		b.Least, b.Most = min(max(b.Least, least), most), max(min(b.Most, most), least)
	}
	return narrow.merged()
}

// Since returns the distribution of the intervals that are in d and not in an earlier distribution of the same row. The
// limits of a bucket may have become wider since, because they are within those of all intervals (Within).
func (d Distribution) Since(earlier Distribution) Distribution {
	later := slices.Clone(d)
	for _, b := range earlier {
		for _, fits := range []func(Bucket) bool{
			func(l Bucket) bool { return l.Least <= b.Least && b.Most <= l.Most },
			func(l Bucket) bool { return l.Least <= b.Most && b.Least <= l.Most },
			func(Bucket) bool { return true },
		} {
			b.Count -= later.take(b.Count, fits)
		}
	}
	return slices.DeleteFunc(later, func(b Bucket) bool { return b.Count == 0 })
}

// take subtracts as many intervals as there are, up to n, from the buckets that fit. It returns their number.
func (d Distribution) take(n uint64, fits func(Bucket) bool) (taken uint64) {
	for i := range d {
		if b := &d[i]; taken < n && b.Count > 0 && fits(*b) {
			some := min(b.Count, n-taken)
			b.Count -= some
			taken += some
		}
	}
	return taken
}

// Percentile returns limits of the duration that the given percentage of all intervals does
// not exceed: of a hundred intervals, the 50th percentile is the 50th shortest. The
// distribution must not be empty.
func (d Distribution) Percentile(percent float64) (least, most uint64) {
	n := d.Count()
	// The factor keeps a rounding error from raising a whole number to the next rank.
	rank := min(max(uint64(math.Ceil(float64(n)/100*percent*(1-1e-12))), 1), n)
	return d.at(rank, func(b Bucket) uint64 { return b.Least }), d.at(rank, func(b Bucket) uint64 { return b.Most })
}

// at sorts the limits of all intervals and returns the one with the given rank.
// The duration of that rank lies between its least and its greatest limit, even if
// buckets overlap.
func (d Distribution) at(rank uint64, limit func(Bucket) uint64) uint64 {
	order := slices.SortedFunc(slices.Values(d), func(a, b Bucket) int { return cmp.Compare(limit(a), limit(b)) })
	for _, b := range order {
		if rank <= b.Count {
			return limit(b)
		}
		rank -= b.Count
	}
	return 0
}
