package omis

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A histogram has a bucket for each range of durations: eight of the same width between
// one power of two and the next. So each is an eighth of what is in it wide, or less, and
// which one a duration belongs to takes a few instructions to find out. What is below
// eight has buckets of its own.

const (
	// stepsShift is how many buckets there are from one power of two to the next, as a
	// power of two.
	stepsShift = 3
	// Buckets is how many there are. The last one has what goes beyond it as well, which
	// in nanoseconds begins after a century.
	Buckets = 480
)

// BucketOf is the number of the bucket that a duration belongs to.
func BucketOf(v uint64) int {
	shift := max(bits.Len64(v), stepsShift+1) - stepsShift - 1
	return min(shift<<stepsShift+int(v>>shift), Buckets-1)
}

// BucketRange is the least and the greatest duration of a bucket.
func BucketRange(n int) (least, most uint64) {
	shift := max(n>>stepsShift-1, 0)
	least = uint64(n-shift<<stepsShift) << shift
	if n == Buckets-1 {
		return least, math.MaxUint64
	}
	return least, least + 1<<shift - 1
}

// Bucket is how many intervals took how long: none of them less than Least, none more
// than Most, in nanoseconds.
type Bucket struct{ Least, Most, Count uint64 }

// Distribution are the buckets that have something in them, in the order of their Least.
// Those of several placements, or that different costs were taken off from, have other
// limits and may overlap.
type Distribution []Bucket

// Histogram is a row with its distribution, which is read before it: where the thread goes
// on meanwhile, the row may tell of some intervals more.
type Histogram struct {
	Row
	Buckets Distribution
}

// HistogramStore is a Store of StoreHistograms.
type HistogramStore interface {
	Store
	// Histograms are the rows, as Rows has them, with their distributions.
	Histograms() ([]Histogram, error)
}

// DistributionOf makes one of the counts of buckets by their numbers.
func DistributionOf(counts []uint64) (d Distribution) {
	for n, count := range counts {
		if count > 0 {
			least, most := BucketRange(n)
			d = append(d, Bucket{least, most, count})
		}
	}
	return d
}

// Count is how many intervals there are in all.
func (d Distribution) Count() (n uint64) {
	for i := range d {
		n += d[i].Count
	}
	return n
}

// Join is the sum of two distributions.
func (d Distribution) Join(other Distribution) Distribution {
	all := slices.Concat(d, other)
	slices.SortFunc(all, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(a.Least, b.Least), cmp.Compare(a.Most, b.Most))
	})
	return all.merged()
}

// merged puts neighbours of the same limits into one.
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

// Without is the distribution as it would be if each interval were shorter by what
// probing it took, as Intervals.Without has it: limits move, and counts stay.
func (d Distribution) Without(nanoseconds int64) Distribution {
	moved := slices.Clone(d)
	for i := range moved {
		b := &moved[i]
		b.Least, b.Most = without(b.Least, nanoseconds), without(b.Most, nanoseconds)
	}
	return moved.merged()
}

// without is a duration without what probing it took: not less than nothing, nor more
// than there is.
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

// Within is the distribution of intervals none of which took less or more than that.
func (d Distribution) Within(least, most uint64) Distribution {
	narrow := slices.Clone(d)
	for i := range narrow {
		b := &narrow[i]
		b.Least, b.Most = min(max(b.Least, least), most), max(min(b.Most, most), least)
	}
	return narrow.merged()
}

// Percentile is within which limits the duration lies that so many percent of all
// intervals did not go beyond: of a hundred of them the fiftieth is the 50th percentile.
// There must be some.
func (d Distribution) Percentile(percent float64) (least, most uint64) {
	n := d.Count()
	// What is not quite a whole number for want of digits is not to be the next one.
	rank := min(max(uint64(math.Ceil(float64(n)/100*percent*(1-1e-12))), 1), n)
	return d.at(rank, func(b Bucket) uint64 { return b.Least }), d.at(rank, func(b Bucket) uint64 { return b.Most })
}

// at is the limit of that rank among those of all intervals: where buckets overlap, the
// duration of that rank is between the least and the greatest limit of its rank.
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
