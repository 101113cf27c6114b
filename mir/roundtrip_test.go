package mir

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mirador/omis"
)

// TestRoundTrip checks that a written document reads back unchanged, indented or not.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := documents().Draw(t, "document")
		encoder := Encoder{Indent: rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent")}
		var text writable
		if err := encoder.Encode(&text, want); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text, ReplyLimits())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if forgetPositions(got); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, want)
		}
	})
}

type writable []byte

func (w *writable) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// documents generates documents as Decode returns them: entities in the order of the DTD,
// empty lists nil.
func documents() *rapid.Generator[Document] {
	return rapid.Custom(func(t *rapid.T) Document {
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0:
			return &SIRRequest{Resources: some(t, 1, resources)}
		case 1:
			return &SnapshotRequest{Named: flag(t), Stack: rapid.IntRange(0, 1000).Draw(t, "stack")}
		case 2:
			return instrRequest(t)
		case 3:
			return controlRequest(t)
		case 4:
			return &Snapshot{Entities: entities(t, kinds(), true)}
		case 5:
			return &Probe{ID: id(t), Placements: some(t, 0, placement), Cost: perhaps(t, spent), Notice: text(t)}
		case 6:
			m := measurement(t, 3)
			return &m
		case 7:
			return &Errors{Messages: some(t, 1, text)}
		}
		return &Explain{Matches: rapid.IntRange(0, 100).Draw(t, "matches"), Cost: cost(t), Rough: flag(t), Notice: text(t), Requests: some(t, 0, explained)}
	})
}

func some[T any](t *rapid.T, least int, one func(*rapid.T) T) []T {
	var all []T
	for range rapid.IntRange(least, 3).Draw(t, "count") {
		all = append(all, one(t))
	}
	return all
}

func perhaps[T any](t *rapid.T, one func(*rapid.T) T) *T {
	if !flag(t) {
		return nil
	}
	value := one(t)
	return &value
}

func flag(t *rapid.T) bool { return rapid.Bool().Draw(t, "flag") }

// text generates any text that XML can carry, including white space and markup.
func text(t *rapid.T) string {
	runes := rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("<>&'\"\r\n\t ]x"))).Filter(isChar)
	return rapid.StringOfN(runes, -1, 20, -1).Draw(t, "text")
}

func id(t *rapid.T) string { return "x" + text(t) }

// cost generates a number with no more digits than the encoder writes.
func cost(t *rapid.T) float64 { return float64(rapid.Int64Range(0, 1e15).Draw(t, "cost")) / 1000 }

func resources(t *rapid.T) Resource { return Resource{In: id(t), Out: text(t)} }

func metric(t *rapid.T) Metric { return Metric{Name: id(t)} }

func function(t *rapid.T) Function {
	return rapid.SampledFrom([]Function{Last, Average, Maximum, Minimum, Sum, Variance}).Draw(t, "function")
}

func placement(t *rapid.T) omis.Placement {
	bias := rapid.Int64Range(0, 1<<50).Draw(t, "bias")
	return omis.Placement{Name: text(t), Why: text(t), Cost: cost(t), Bias: bias, Measured: flag(t)}
}

// tenths generates a number with one digit after the point, so that writing does not round it.
func tenths(t *rapid.T) float64 { return float64(rapid.IntRange(0, 1000).Draw(t, "tenths")) / 10 }

func share(t *rapid.T) float64 { return tenths(t) / 100 }

func spent(t *rapid.T) Cost {
	return Cost{
		Hits: rapid.Int64Min(0).Draw(t, "hits"), Lost: rapid.Int64Min(0).Draw(t, "lost"), Rate: float64(rapid.IntRange(0, 1e9).Draw(t, "rate")),
		PerHit: tenths(t), Share: share(t), Dilation: tenths(t), Budget: share(t), Rough: flag(t),
	}
}

func explained(t *rapid.T) ExplainedRequest {
	return ExplainedRequest{Text: text(t), Placement: placement(t)}
}

func measuring(t *rapid.T) *Measuring {
	least := func(n int64) func(*rapid.T) int64 {
		return func(t *rapid.T) int64 { return rapid.Int64Min(n).Draw(t, "time") }
	}
	if !flag(t) {
		return nil
	}
	m := &Measuring{
		Delivery: perhaps(t, least(-1)), Destination: perhaps(t, text),
		Interval: perhaps(t, least(0)), Duration: perhaps(t, least(0)), Aggregates: some(t, 0, function),
	}
	if reflect.DeepEqual(m, &Measuring{}) {
		return nil
	}
	return m
}

func instrRequest(t *rapid.T) *InstrRequest {
	return &InstrRequest{
		Region:  perhaps(t, func(t *rapid.T) CodeRegion { return CodeRegion{From: id(t), To: text(t)} }),
		Metrics: some(t, 0, metric), Events: rapid.IntRange(0, 2).Draw(t, "events"), Measuring: measuring(t),
		Entities: entities(t, kinds(), false), Activated: flag(t), Flush: flag(t), Budget: share(t), Lease: term(t), Label: rapid.SampledFrom([]string{"", "ci", "a-b.c:7/é"[:7]}).Draw(t, "label"), Key: rapid.SampledFrom([]string{"", "6f\"<1&e"}).Draw(t, "key"), Note: rapid.SampledFrom([]string{"", "a <note> & \"more\" é"}).Draw(t, "note"), Fast: flag(t), OneIn: rapid.Int64Range(0, MostOneIn).Draw(t, "one in"),
		Percentiles: some(t, 0, percentageOf), Details: flag(t),
	}
}

func controlRequest(t *rapid.T) *ControlRequest {
	return &ControlRequest{
		Action: rapid.SampledFrom([]Action{Value, Activate, Deactivate, Reset, Remove}).Draw(t, "action"),
		Probes: some(t, 1, func(t *rapid.T) ProbeRef {
			if flag(t) {
				return ProbeRef{Label: "ci-42"}
			}
			return ProbeRef{ID: id(t)}
		}),
		Metrics: some(t, 0, metric), Measuring: measuring(t), Entities: entities(t, kinds(), false), Flush: flag(t), Budget: share(t), Lease: term(t), Details: flag(t),
	}
}

func percentageOf(t *rapid.T) float64 { return rapid.Float64Range(0, 100).Draw(t, "of") }

// within returns the kinds that may be inside a kind (MIR 3).
func within(t *rapid.T, kind EntityKind) []EntityKind {
	switch kind {
	case Site:
		if flag(t) {
			return []EntityKind{Node}
		}
		return []EntityKind{Communicator, Process, Thread}
	case Node:
		return []EntityKind{Communicator, Process, Thread}
	case Communicator:
		return []EntityKind{Process}
	case Process:
		return []EntityKind{Thread}
	}
	return nil
}

func entities(t *rapid.T, allowed []EntityKind, snapshot bool) []Entity {
	if len(allowed) == 0 {
		return nil
	}
	all := some(t, 0, func(t *rapid.T) Entity {
		e := Entity{Kind: rapid.SampledFrom(allowed).Draw(t, "kind"), ID: id(t)}
		e.Children = entities(t, within(t, e.Kind), snapshot)
		if !snapshot {
			return e
		}
		e.Name = text(t)
		e.Master = e.Kind == Thread && flag(t)
		if e.Kind == Thread || e.Kind == Process && len(e.Children) == 0 {
			e.Stack = some(t, 0, text)
		}
		return e
	})
	slices.SortStableFunc(all, func(a, b Entity) int { return a.Kind.rank() - b.Kind.rank() })
	return all
}

func measurement(t *rapid.T, depth int) Measurement {
	m := Measurement{ProbeID: text(t), ProcessID: text(t), ThreadID: text(t), Value: Decimal(rapid.Float64Range(-1e9, 1e9).Draw(t, "value")), Notice: text(t)}
	m.Sample = perhaps(t, func(t *rapid.T) Sample {
		return Sample{rapid.Int64Min(0).Draw(t, "count"), rapid.Int64Min(0).Draw(t, "timed"), Decimal(tenths(t)), Decimal(tenths(t)), rapid.Int64Min(0).Draw(t, "unmatched")}
	})
	m.Occurrence = perhaps(t, func(t *rapid.T) Occurrence {
		return Occurrence{
			Event: rapid.SampledFrom([]string{"enter", "leave", "unmatched"}).Draw(t, "event"), Time: Decimal(rapid.Float64Range(0, 1e9).Draw(t, "time")),
			Thread: text(t), Goroutine: text(t), Lost: rapid.Int64Range(UnknownLoss, 1e9).Draw(t, "lost"),
		}
	})
	m.Spread = perhaps(t, func(t *rapid.T) Spread {
		return Spread{some(t, 1, func(t *rapid.T) Percentile {
			return Percentile{percentageOf(t), Decimal(tenths(t)), Decimal(tenths(t))}
		})}
	})
	if depth > 0 {
		m.Children = some(t, 0, func(t *rapid.T) Measurement { return measurement(t, depth-1) })
	}
	return m
}

// term generates a lease.
func term(t *rapid.T) time.Duration {
	if flag(t) {
		return 0
	}
	return time.Duration(rapid.Int64Range(int64(leastLease), int64(longestLease)).Draw(t, "lease"))
}
