//go:build linux && amd64

package rig

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/program"
)

// Row has the measurements of one thread in a region.
type Row struct {
	Thread                            omis.Token
	Count, Intervals, Unfinished      int64
	Last, Sum, Squares, Least, Utmost float64
	Some                              bool  // not all intervals are timed
	Begun                             int64 // number of all intervals, timed or not; set if Some
	Spread                            bool  // Buckets is set
	Buckets                           []program.Bucket
}

// Rows returns the rows of a region, in the order in which threads first entered it.
func (r *Monitor) Rows(region int) []Row {
	r.T.Helper()
	reply := r.Ask(": pa_counter_read([pa_c_%d]) pa_timer_read([pa_t_%d])", region, region)
	var list []Row
	counted, timed := reply[1][0].Values[1].List, reply[2][0].Values[1].List
	for i := 0; i < len(counted); i += 3 {
		w := Row{Thread: counted[i+1].Token()}
		w.Count, _ = counted[i+2].Int64()
		list = append(list, w)
	}
	for i := 0; i < len(timed); i += 9 {
		v := timed[i:]
		for k := range list {
			if w := &list[k]; w.Thread == v[1].Token() {
				w.Intervals, _ = v[2].Int64()
				w.Unfinished, _ = v[8].Int64()
				w.Last, w.Sum, w.Squares, w.Least, w.Utmost = v[3].Float, v[4].Float, v[5].Float, v[6].Float, v[7].Float
			}
		}
	}
	for i := range list {
		list[i].Some = r.OneIn > 0
	}
	if r.OneIn > 0 {
		r.estimates(region, list)
	}
	if r.Spread {
		r.histograms(region, list)
	}
	return list
}

// histograms adds the buckets to the rows of a region, in nanoseconds.
func (r *Monitor) histograms(region int, list []Row) {
	r.T.Helper()
	values := r.Ask(": pa_timer_histogram([pa_t_%d],0)", region)[1][0].Values[1].List
	ns := func(v omis.Value) uint64 { return uint64(math.Round(v.Float * 1e9)) }
	for ; len(values) > 0; values = values[4:] {
		for k := range list {
			if w := &list[k]; w.Thread == values[1].Token() {
				w.Spread = true
				for b := values[3].List; len(b) > 0; b = b[3:] {
					w.Buckets = append(w.Buckets, program.Bucket{Least: ns(b[0]), Most: ns(b[1]), Count: b[2].N})
				}
			}
		}
	}
}

// estimates sets Begun in the rows of a region.
func (r *Monitor) estimates(region int, list []Row) {
	r.T.Helper()
	values := r.Ask(": pa_timer_estimate([pa_t_%d],0)", region)[1][0].Values[1].List
	for ; len(values) > 0; values = values[11:] {
		for k := range list {
			if list[k].Thread == values[1].Token() {
				list[k].Begun, _ = values[2].Int64()
			}
		}
	}
}

// Summary describes rows by their different counts, each with the number of threads that have it.
func Summary(rows []Row) string {
	var kinds []string
	times := make(map[string]int)
	for _, w := range rows {
		kind := fmt.Sprintf("%d/%d/%d", w.Count, w.Intervals, w.Unfinished)
		if w.Some {
			kind += fmt.Sprintf("/%d", w.Begun)
		}
		if times[kind]++; times[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d×%s", times[kind], kind)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// Plausible checks that the times of a row are consistent.
func (w *Row) Plausible() error {
	n := float64(w.Intervals)
	if err := w.checkBuckets(); err != nil {
		return err
	}
	switch {
	case n == 0:
		return nil
	case w.Least <= 0 || w.Least > w.Utmost || w.Last < w.Least || w.Last > w.Utmost:
		return fmt.Errorf("least %g, last %g, utmost %g", w.Least, w.Last, w.Utmost)
	case w.Sum < n*w.Least*0.999999 || w.Sum > n*w.Utmost*1.000001:
		return fmt.Errorf("sum %g of %g times %g to %g", w.Sum, n, w.Least, w.Utmost)
	case w.Squares*n < w.Sum*w.Sum*0.999999 || w.Squares > w.Sum*w.Utmost*1.000001:
		return fmt.Errorf("sum of squares %g with sum %g", w.Squares, w.Sum)
	}
	return nil
}

// checkBuckets checks that the buckets contain all intervals, and that they begin with the least
// and end with the greatest.
func (w *Row) checkBuckets() error {
	if !w.Spread || w.Intervals == 0 && len(w.Buckets) == 0 {
		return nil
	}
	var n uint64
	for _, b := range w.Buckets {
		n += b.Count
	}
	if n != uint64(w.Intervals) {
		return fmt.Errorf("%d intervals in buckets, %d in all", n, w.Intervals)
	}
	first, last := w.Buckets[0], w.Buckets[len(w.Buckets)-1]
	if least, utmost := math.Round(w.Least*1e9), math.Round(w.Utmost*1e9); float64(first.Least) != least || float64(last.Most) != utmost {
		return fmt.Errorf("buckets %v of %g to %g", w.Buckets, least, utmost)
	}
	return nil
}
