package pa

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis"
)

// TestIntegrator compares each level with sums of the added values.
func TestIntegrator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newIntegrator()
		want := make(map[owner]*values)
		for range rapid.IntRange(0, 30).Draw(t, "values") {
			o := owner{
				rapid.SampledFrom([]omis.Token{"p_1", "p_2"}).Draw(t, "process"),
				rapid.SampledFrom([]omis.Token{"t_1", "t_2"}).Draw(t, "thread"),
			}
			v := float64(rapid.IntRange(-1000, 1000).Draw(t, "value"))
			g.add(o, v)
			for _, at := range []owner{o, {o.proc, omis.Undefined}, {omis.Undefined, omis.Undefined}} {
				w := want[at]
				if w == nil {
					w = &values{min: math.Inf(1), max: math.Inf(-1)}
					want[at] = w
				}
				w.count++
				w.sum += v
				w.squares += v * v
				w.min, w.max = math.Min(w.min, v), math.Max(w.max, v)
			}
		}
		rows := 0
		for level := range int64(3) {
			list := g.read(level)[1].List
			for ; len(list) > 0; list = list[8:] {
				rows++
				w := want[owner{list[0].Token(), list[1].Token()}]
				if w == nil || list[2].N != uint64(w.count) || list[4].Float != w.sum || list[5].Float != w.squares ||
					list[6].Float != w.min || list[7].Float != w.max {
					t.Fatalf("level %d: %v, want %+v", level, list[:8], w)
				}
			}
		}
		if rows != len(want) {
			t.Fatalf("%d rows, want %d", rows, len(want))
		}
		if g.reset(); g.read(inTotal)[0].N != 0 {
			t.Fatal("an integrator has rows after a reset")
		}
	})
}

func TestCombinations(t *testing.T) {
	for name, test := range map[string]struct {
		rule    rule
		size    int64
		signals []int64
		raised  []int // the signals after which the event is raised
	}{
		"and":      {every, 2, []int64{1, 1, 2, 2, 2, 1}, []int{2, 5}},
		"sequence": {inOrder, 3, []int64{2, 1, 3, 2, 1, 3, 1, 2, 3}, []int{5, 8}},
		"count":    {anyInput, 3, []int64{1, 1, 1, 2, 3, 1, 1}, []int{2, 5}},
		"one":      {every, 1, []int64{1, 1}, []int{0, 1}},
	} {
		c := &combination{size: test.size, rule: test.rule}
		c.begin()
		var raised []int
		for i, input := range test.signals {
			if c.signal(input) {
				raised = append(raised, i)
			}
		}
		if len(raised) != len(test.raised) || raised[0] != test.raised[0] || raised[1] != test.raised[1] {
			t.Errorf("%s raised after %v, want %v", name, raised, test.raised)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, pair := range [][2]omis.Value{
		{omis.Int(1), omis.Float(1)}, {omis.String("a"), omis.String("a")}, {omis.TokenValue("p_1"), omis.TokenValue("p_1")},
		{omis.List(omis.Int(1)), omis.List(omis.Int(1))}, {omis.Int(0), omis.Value{Kind: omis.KindInt, Neg: true}},
	} {
		if !equal(pair[0], pair[1]) {
			t.Errorf("%v and %v differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]omis.Value{
		{omis.Int(1), omis.Int(-1)}, {omis.String("a"), omis.TokenValue("a")}, {omis.Uint(1 << 63), omis.Uint(1<<63 + 1)}, {omis.List(), omis.Int(0)},
	} {
		if equal(pair[0], pair[1]) {
			t.Errorf("%v and %v are equal", pair[0], pair[1])
		}
	}
}
