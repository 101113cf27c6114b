package mir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMeasuredIsReversible checks that a reader who knows the requests recovers the tuples.
func TestMeasuredIsReversible(t *testing.T) {
	rapid.Check(t, reversible)
}

// FuzzMeasured is the same for fuzzing.
func FuzzMeasured(f *testing.F) { f.Fuzz(rapid.MakeFuzz(reversible)) }

func reversible(t *rapid.T) {
	probes := make([]Values, rapid.IntRange(1, 3).Draw(t, "probes"))
	for i := range probes {
		probes[i] = measured(t, fmt.Sprintf("probe_%d", i))
	}
	singleLevels(t, checkReversible(t, expected, probes...))
}

// checkReversible checks that the document of probes, which it returns, has the wanted values.
func checkReversible(t interface{ Fatalf(string, ...any) }, want func(*Values) map[string]string, probes ...Values) *Measurement {
	document, written := compressed(t, probes...)
	read, err := Decompress(probes, document)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	for i := range probes {
		got := map[string]string{}
		for _, tuple := range read[i].Tuples {
			got[tuple.name()] = tuple.Value
		}
		if want := want(&probes[i]); !maps.Equal(got, want) {
			t.Fatalf("%s\ngot  %v\nwant %v", written, got, want)
		}
	}
	return document
}

// TestKeysSortLikeIDs checks that tuples with keys are sorted as without, and that the same
// ones are found to be equal.
func TestKeysSortLikeIDs(t *testing.T) {
	texts := []string{"", "t_0", "t_9", "t_10", "t_123456789012345678"}
	rapid.Check(t, func(t *rapid.T) {
		p := place{}.with(&Entity{Kind: Thread, ID: "*"}).complete()
		tuples, order := make([]Tuple, 2*few), make([]int32, 2*few)
		for i := range tuples {
			tuples[i] = Tuple{ProcessID: rapid.SampledFrom([]string{"", "p1", "p2"}).Draw(t, "process"), ThreadID: rapid.SampledFrom(texts).Draw(t, "thread"), Metric: rapid.IntRange(0, 2).Draw(t, "metric")}
			order[i] = int32(i)
		}
		keys := p.keys(tuples, order)
		if keys == nil {
			t.Fatal("there are no keys")
		}
		byKeys := slices.Clone(order)
		equal := fmt.Sprint(arrangeByKeys(byKeys, keys))
		if same := fmt.Sprint(p.arrangeByIDs(tuples, order)); same != equal || !slices.Equal(order, byKeys) {
			t.Fatalf("by keys %v, equal are %s; by ids %v, equal are %s", byKeys, equal, order, same)
		}
	})
}

func TestNoKeys(t *testing.T) {
	p := place{}.complete()
	for _, id := range []string{"t", "t_01", "u_1", "t_1234567890123456789"} {
		tuples, order := make([]Tuple, few), make([]int32, few)
		for i := range tuples {
			tuples[i].ThreadID, order[i] = fmt.Sprint("t_", i), int32(i)
		}
		tuples[few/2].ThreadID = id
		if p.keys(tuples, order) != nil {
			t.Errorf("there are keys with an id %s", id)
		}
	}
}

// TestMeasuredKeepsStatistics checks that the leaves are the statistics in the request's
// order, and that the elements around them carry their ids.
func TestMeasuredKeepsStatistics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Values{Metrics: rapid.IntRange(1, 3).Draw(t, "metrics"), Functions: rapid.IntRange(1, 4).Draw(t, "functions")}
		var want []string
		for i := range v.Metrics * v.Functions {
			tuple := Tuple{Metric: i / v.Functions, Function: i % v.Functions, Value: fmt.Sprint(i)}
			if flag(t) {
				tuple.ProcessID = rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "process")
				tuple.ThreadID = rapid.SampledFrom([]string{"", "t1", "t2"}).Draw(t, "thread")
			}
			v.Tuples = append(v.Tuples, tuple)
			want = append(want, tuple.ProcessID+"/"+tuple.ThreadID+"="+tuple.Value)
		}
		v.Tuples = rapid.Permutation(v.Tuples).Draw(t, "order")
		document, _ := compressed(t, v)
		singleLevels(t, document)
		got := flat(document, "", "")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// compressed writes the document of some values, and reads it.
func compressed(t interface{ Fatalf(string, ...any) }, probes ...Values) (document *Measurement, text []byte) {
	text, err := Marshal(&Measured{Probes: probes})
	if err != nil {
		t.Fatalf("%v", err)
	}
	read, err := Decode(text, ReplyLimits())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return read.(*Measurement), text
}

// singleLevels checks MIR 6, rule 3: a merged element has "only the attribute k".
func singleLevels(t *rapid.T, m *Measurement) {
	if len(m.Children) == 0 {
		return
	}
	ids := 0
	for _, id := range []string{m.ProbeID, m.SiteID, m.NodeID, m.CommunicatorID, m.ProcessID, m.ThreadID} {
		if id != "" {
			ids++
		}
	}
	if ids > 1 || m.Value != "" {
		t.Fatalf("a merged element has %d ids and the value %q: %+v", ids, m.Value, m)
	}
	for i := range m.Children {
		singleLevels(t, &m.Children[i])
	}
}

// flat returns the leaves of a document with the ids around them.
func flat(m *Measurement, process, thread string) []string {
	process, thread = process+m.ProcessID, thread+m.ThreadID
	if len(m.Children) == 0 {
		return []string{process + "/" + thread + "=" + m.Value}
	}
	var leaves []string
	for i := range m.Children {
		leaves = append(leaves, flat(&m.Children[i], process, thread)...)
	}
	return leaves
}

// measured generates a request and tuples for it, some of them missing, in any order.
func measured(t *rapid.T, probe string) Values {
	v := Values{ProbeID: probe, Metrics: rapid.IntRange(1, 3).Draw(t, "metrics")}
	symbols := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "?"}), kindCount, kindCount).Draw(t, "symbols")
	v.Entities = requested(t, kinds(), symbols)
	var measure func(path []*Entity, ids Tuple)
	measure = func(path []*Entity, ids Tuple) {
		e := path[len(path)-1]
		names := []string{e.ID}
		if e.symbolic() {
			names = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x1", "x2", "x9", "x10", "x11"}), 0, 4, rapid.ID).Draw(t, "ids")
		}
		for _, name := range names {
			*ids.id(e.Kind) = name
			for i := range e.Children {
				measure(append(path, &e.Children[i]), ids)
			}
			if len(e.Children) > 0 {
				continue
			}
			for metric := range v.Metrics {
				ids.Metric = metric
				ids.Value = rapid.SampledFrom([]string{"", "1", "2.5", "-3"}).Draw(t, "value")
				v.Tuples = append(v.Tuples, ids)
			}
		}
	}
	for i := range v.Entities {
		measure([]*Entity{&v.Entities[i]}, Tuple{})
	}
	v.Tuples = rapid.Permutation(v.Tuples).Draw(t, "order")
	return v
}

// requested generates the entities of a request: at each level named entities and at most one
// symbol. Each kind has one symbol: with both, ? would stand for what * does not have.
func requested(t *rapid.T, allowed []EntityKind, symbols []string) []Entity {
	kind := rapid.SampledFrom(allowed).Draw(t, "kind")
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "named")
	if len(ids) == 0 || flag(t) {
		ids = slices.Insert(ids, rapid.IntRange(0, len(ids)).Draw(t, "at"), symbols[kind.rank()])
	}
	all := make([]Entity, len(ids))
	for i, id := range ids {
		all[i] = Entity{Kind: kind, ID: id}
		if inner := within(t, kind); len(inner) > 0 && flag(t) {
			all[i].Children = requested(t, inner, symbols)
		}
	}
	return all
}

// expected returns the values that the document must contain: all measured values, and the missing
// values of every entity that is present.
func expected(v *Values) map[string]string {
	all := map[string]string{}
	var blank func(forest []Entity, path string)
	blank = func(forest []Entity, path string) {
		for i := range forest {
			e := &forest[i]
			here := path + "/" + string(e.Kind) + "=" + e.ID
			switch {
			case e.symbolic():
			case len(e.Children) > 0:
				blank(e.Children, here)
			default:
				for metric := range v.Metrics {
					all[fmt.Sprint(here, " ", metric)] = ""
				}
			}
		}
	}
	blank(v.Entities, "")
	for _, tuple := range v.Tuples {
		all[tuple.name()] = tuple.Value
	}
	if strings.Contains(fmt.Sprint(v.Entities), "*") || strings.Contains(fmt.Sprint(v.Entities), "?") {
		blankInside(all, v)
	}
	return all
}

// name returns the entities and the metric of a tuple.
func (t *Tuple) name() string {
	path := ""
	for _, kind := range kinds() {
		if id := *t.id(kind); id != "" {
			path += "/" + string(kind) + "=" + id
		}
	}
	return fmt.Sprint(path, " ", t.Metric)
}

// blankInside adds the missing values of named entities inside * or ?: where one of them has a
// value, the document has positions for all of them.
func blankInside(all map[string]string, v *Values) {
	var visit func(forest []Entity, path string)
	visit = func(forest []Entity, path string) {
		for i := range forest {
			e := &forest[i]
			for _, id := range present(all, path, e, forest) {
				here := path + "/" + string(e.Kind) + "=" + id
				if len(e.Children) > 0 {
					visit(e.Children, here)
					continue
				}
				for metric := range v.Metrics {
					if key := fmt.Sprint(here, " ", metric); all[key] == "" {
						all[key] = ""
					}
				}
			}
		}
	}
	visit(v.Entities, "")
}

// present returns the ids of an entity that have values. A symbol has none of those that are named beside it.
func present(all map[string]string, path string, e *Entity, beside []Entity) []string {
	if !e.symbolic() {
		return []string{e.ID}
	}
	found := map[string]bool{}
	for key := range all {
		if rest, ok := strings.CutPrefix(key, path+"/"+string(e.Kind)+"="); ok {
			found[rest[:strings.IndexAny(rest, "/ ")]] = true
		}
	}
	for i := range beside {
		delete(found, beside[i].ID)
	}
	var ids []string
	for id := range found {
		ids = append(ids, id)
	}
	return ids
}
