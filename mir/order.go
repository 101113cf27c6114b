package mir

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
)

// sort assigns the tuples to places, and sorts them there.
func (g *grouping) sort() {
	places := make([]int32, len(g.values.Tuples)) // all of them have the first place
	if len(g.places) > 1 || g.places[0].named != 0 {
		f := newFinder(g.places)
		for i := range places {
			places[i] = f.nth(&g.values.Tuples[i], 0)
		}
	}
	if equal := g.arrange(places); len(equal) > 0 {
		g.spread(newFinder(g.places), equal, places)
		g.arrange(places)
	}
}

// arrange sorts the tuples, whose places are given. It returns the positions in order of
// the tuples that are equal to the one before, but for their values.
func (g *grouping) arrange(places []int32) (equal []int) {
	ends := make([]int, len(g.places)+1)
	for i, at := range places {
		if g.asked(i) && at >= 0 {
			ends[at+1]++
		}
	}
	for i := range g.places {
		ends[i+1] += ends[i]
	}
	g.order, g.unrequested = make([]int32, ends[len(g.places)]), nil
	for i, at := range places {
		switch {
		case !g.asked(i):
		case at < 0:
			g.unrequested = append(g.unrequested, int32(i))
		default:
			g.order[ends[at]] = int32(i)
			ends[at]++
		}
	}
	g.ends = ends[:len(g.places)]
	for i, s := range g.spans() {
		for _, at := range g.places[i].arrange(g.values.Tuples, g.order[s.from:s.to]) {
			equal = append(equal, s.from+at)
		}
	}
	return equal
}

// asked reports whether the request has the metric of a tuple.
func (g *grouping) asked(i int) bool {
	metric := g.values.Tuples[i].Metric
	return metric >= 0 && metric < g.values.Metrics
}

// spread moves equal tuples to different places.
func (g *grouping) spread(f *finder, equal []int, places []int32) {
	n := 0
	for i, at := range equal {
		if n++; i == 0 || equal[i-1] != at-1 {
			n = 1
		}
		places[g.order[at]] = f.nth(g.tuple(at), n)
	}
}

// arrange sorts tuples of the place by ids and metric.
func (p *place) arrange(tuples []Tuple, order []int32) (equal []int) {
	if k := p.keys(tuples, order); k != nil {
		return arrangeByKeys(order, k)
	}
	return p.arrangeByIDs(tuples, order)
}

func (p *place) arrangeByIDs(tuples []Tuple, order []int32) (equal []int) {
	compare := func(i, j int32) int {
		a, b := &tuples[i], &tuples[j]
		return cmp.Or(p.compare(a, b), cmp.Compare(a.Metric, b.Metric))
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Or(compare(i, j), cmp.Compare(i, j)) })
	for at := 1; at < len(order); at++ {
		if compare(order[at-1], order[at]) == 0 {
			equal = append(equal, at)
		}
	}
	return equal
}

// key is a tuple's index, with a number that sorts tuples like their ids and metrics.
type key struct {
	number uint64
	index  int32
}

func arrangeByKeys(order []int32, keys []key) (equal []int) {
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.index, b.index))
	})
	for at, k := range keys {
		order[at] = k.index
		if at > 0 && keys[at-1].number == k.number {
			equal = append(equal, at)
		}
	}
	return equal
}

// few is the number of tuples below which keys are not worth it.
const few = 32

// keys packs the numbers in the ids of each tuple into one: comparing ids of many tuples would
// take most of the time of a document. It returns nil where ids have no numbers, different
// texts before the numbers, or too great numbers.
func (p *place) keys(tuples []Tuple, order []int32) []key {
	if len(order) < few {
		return nil
	}
	var texts [kindCount]string
	var most [kindCount + 1]uint64 // greatest numbers by rank, then of a metric
	for _, i := range order {
		t := &tuples[i]
		for rank := range levels {
			id := *t.at(rank)
			text, n, ok := numbered(id)
			if most[rank] > 0 && n > 0 && text != texts[rank] || !ok {
				return nil
			}
			if n > 0 {
				texts[rank], most[rank] = text, max(most[rank], n)
			}
		}
		most[kindCount] = max(most[kindCount], uint64(t.Metric))
	}
	sum := 0
	for _, n := range most {
		sum += bits.Len64(n)
	}
	if sum > 64 {
		return nil
	}
	keys := make([]key, len(order))
	for at, i := range order {
		t, packed := &tuples[i], uint64(0)
		for _, rank := range p.sorted {
			_, n, _ := numbered(*t.at(rank))
			packed = packed<<bits.Len64(most[rank]) | n
		}
		keys[at] = key{packed<<bits.Len64(most[kindCount]) | uint64(t.Metric), i}
	}
	return keys
}

// numbered splits an id such as t_12 into its text and its number plus 1; the number of "" is
// 0. ok is false for another kind of id.
func numbered(id string) (text string, n uint64, ok bool) {
	if id == "" {
		return "", 0, true
	}
	at := len(id)
	for at > 0 && isDigit(id[at-1]) {
		at--
	}
	number := id[at:]
	if number == "" || len(number) > 18 || number[0] == '0' && len(number) > 1 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return id[:at], n + 1, err == nil
}
