package program_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis/program"
)

// TestBuckets checks that buckets adjoin, and that the width of each is at most an eighth
// of its durations.
func TestBuckets(t *testing.T) {
	var next uint64
	for n := range program.Buckets {
		least, most := program.BucketRange(n)
		if least != next || most < least || program.BucketOf(least) != n || program.BucketOf(most) != n {
			t.Fatalf("bucket %d is %d to %d, which belong to %d and %d; the one before ends at %d", n, least, most, program.BucketOf(least), program.BucketOf(most), next)
		}
		if n < program.Buckets-1 && (most-least)*8 > least {
			t.Fatalf("bucket %d is %d to %d", n, least, most)
		}
		next = most + 1
	}
	if next != 0 {
		t.Errorf("the last bucket ends at %d", next-1)
	}
	if least, _ := program.BucketRange(program.Buckets - 1); least < 100*365*24*60*60*1e9 {
		t.Errorf("the last bucket begins at %d", least)
	}
}

// durations draws durations from nanoseconds to hours.
func durations(t *rapid.T) []uint64 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint64 {
		return rapid.Uint64Range(0, 1<<rapid.IntRange(0, 44).Draw(t, "size")).Draw(t, "duration")
	}), 1, 100).Draw(t, "durations")
}

// distribution counts durations as a placement does that measures each of them too long
// by bias.
func distribution(list []uint64, bias uint64) program.Distribution {
	var d program.Distribution
	for _, v := range list {
		least, most := program.BucketRange(program.BucketOf(v + bias))
		d = d.Join(program.Distribution{{Least: least, Most: most, Count: 1}})
	}
	return d.Without(int64(bias))
}

// TestPercentile checks that the limits contain the percentile even if two placements with
// different biases measured the durations, and that without a bias they differ by at most an eighth.
func TestPercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := durations(t), durations(t)
		bias := rapid.Uint64Range(0, 20000).Draw(t, "bias")
		all := slices.Concat(one, other)
		slices.Sort(all)
		d := distribution(one, 0).Join(distribution(other, bias)).Within(all[0], all[len(all)-1])
		if d.Count() != uint64(len(all)) {
			t.Fatalf("%d durations in %v, want %d", d.Count(), d, len(all))
		}
		percent := rapid.Float64Range(0, 100).Draw(t, "percent")
		rank := max(int(math.Ceil(float64(len(all))*percent/100-1e-9)), 1)
		least, most := d.Percentile(percent)
		if v := all[rank-1]; v < least || v > most {
			t.Fatalf("the %gth percentile of %v is %d, but %d to %d in %v", percent, all, v, least, most, d)
		}
		if bias == 0 && float64(most-least) > float64(least)/8 {
			t.Fatalf("the %gth percentile is %d to %d", percent, least, most)
		}
	})
}

func TestPercentilesOfAHundred(t *testing.T) {
	var list []uint64
	for v := range uint64(100) {
		list = append(list, v/16) // in buckets of their own
	}
	d := distribution(list, 0)
	for percent, want := range map[float64]uint64{0: 0, 1: 0, 50: 49 / 16, 90: 89 / 16, 99: 98 / 16, 99.9: 99 / 16, 100: 99 / 16} {
		if least, most := d.Percentile(percent); least != want || most != want {
			t.Errorf("the %gth percentile is %d to %d, want %d", percent, least, most, want)
		}
	}
}

// TestDistributionWithout checks that a negative bias lengthens intervals, and that
// results do not overflow.
func TestDistributionWithout(t *testing.T) {
	d := program.Distribution{{Least: 3, Most: 9, Count: 1}, {Least: 10, Most: math.MaxUint64, Count: 2}}
	for bias, want := range map[int64]program.Distribution{
		5:  {{Least: 0, Most: 4, Count: 1}, {Least: 5, Most: math.MaxUint64 - 5, Count: 2}},
		-5: {{Least: 8, Most: 14, Count: 1}, {Least: 15, Most: math.MaxUint64, Count: 2}},
		0:  d,
	} {
		if got := d.Without(bias); !slices.Equal(got, want) {
			t.Errorf("without %d: %v, want %v", bias, got, want)
		}
	}
}

// TestSince checks that the distribution of later intervals is found, although limits change with the shortest and
// the longest interval.
func TestSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := durations(t), durations(t)
		within := func(list []uint64) program.Distribution {
			return distribution(list, 0).Within(slices.Min(list), slices.Max(list))
		}
		since := within(slices.Concat(one, other)).Since(within(one))
		if got, want := since.Count(), uint64(len(other)); got != want {
			t.Fatalf("%d intervals, want %d: %v", got, want, since)
		}
		slices.Sort(other)
		for i, v := range other {
			least, most := since.Percentile(100 * float64(i+1) / float64(len(other)))
			if v < least || v > most {
				t.Fatalf("number %d of %v is %d, and not from %d to %d", i+1, other, v, least, most)
			}
		}
	})
}
