package mir

import (
	"strings"
	"testing"
)

// compressions have documents as the encoder writes them, plus white space.
var compressions = []struct {
	name     string
	probes   []Values
	document string
}{
	{
		name: "the example of MIR 6, its entities in numeric order",
		probes: []Values{{ProbeID: "x", Metrics: 1, Entities: communicators, Tuples: []Tuple{
			{CommunicatorID: "c1", ProcessID: "p2", Value: "3"},
			{CommunicatorID: "c1", ProcessID: "p1", Value: "4"},
			{CommunicatorID: "c2", ProcessID: "p3", Value: "5"},
		}}},
		document: `
			<measurement>
				<measurement>
					<measurement processId="p1" value="4"/>
					<measurement processId="p2" value="3"/>
				</measurement>
				<measurement>
					<measurement processId="p3" value="5"/>
				</measurement>
			</measurement>`,
	},
	{
		name: "the same with MAXIMUM",
		probes: []Values{{ProbeID: "x", Metrics: 1, Functions: 1, Entities: communicators, Tuples: []Tuple{
			{CommunicatorID: "c2", ProcessID: "p3", Value: "5"},
		}}},
		document: `<measurement communicatorId="c2" processId="p3" value="5"/>`,
	},
	{
		name: "one value of one named process",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p1")}, Tuples: []Tuple{
			{ProcessID: "p1", Value: "3"},
		}}},
		document: `<measurement value="3"/>`,
	},
	{
		name: "named entities keep the request's order, and a missing one has no value",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p2"), named(Process, "p9"), named(Process, "p1")},
			Tuples: []Tuple{{ProcessID: "p1", Value: "1"}, {ProcessID: "p2", Value: "2"}}}},
		document: `<measurement><measurement value="2"/><measurement/><measurement value="1"/></measurement>`,
	},
	{
		name: "threads of a named process, in numeric order",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p_1", named(Thread, "*"))}, Tuples: []Tuple{
			{ProcessID: "p_1", ThreadID: "t_10", Value: "1"}, {ProcessID: "p_1", ThreadID: "t_9", Value: "2"},
		}}},
		document: `<measurement><measurement threadId="t_9" value="2"/><measurement threadId="t_10" value="1"/></measurement>`,
	},
	{
		name: "one thread of a named process keeps the level of the process",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p_1", named(Thread, "?"))}, Tuples: []Tuple{
			{ProcessID: "p_1", ThreadID: "t_1", Value: "1"},
		}}},
		document: `<measurement><measurement threadId="t_1" value="1"/></measurement>`,
	},
	{
		name: "metrics of a thread are merged, in the request's order",
		probes: []Values{{Metrics: 2, Entities: []Entity{named(Thread, "?")}, Tuples: []Tuple{
			{ProcessID: "p_1", ThreadID: "t_1", Metric: 1, Value: "0.5"}, {ProcessID: "p_1", ThreadID: "t_1", Metric: 0, Value: "7"},
			{ProcessID: "p_1", ThreadID: "t_2", Metric: 1, Value: "0.25"},
		}}},
		document: `
			<measurement>
				<measurement threadId="t_1"><measurement value="7"/><measurement value="0.5"/></measurement>
				<measurement threadId="t_2"><measurement/><measurement value="0.25"/></measurement>
			</measurement>`,
	},
	{
		name: "a request without entities gets all ids",
		probes: []Values{{Metrics: 1, Tuples: []Tuple{
			{ProcessID: "p_2", ThreadID: "t_3", Value: "3"}, {ProcessID: "p_1", ThreadID: "t_1", Value: "1"}, {ProcessID: "p_1", ThreadID: "t_2", Value: "2"},
		}}},
		document: `
			<measurement>
				<measurement processId="p_1"><measurement threadId="t_1" value="1"/><measurement threadId="t_2" value="2"/></measurement>
				<measurement processId="p_2" threadId="t_3" value="3"/>
			</measurement>`,
	},
	{
		name: "metrics of one thread: a level for each id",
		probes: []Values{{ProbeID: "probe-1", Metrics: 2, Tuples: []Tuple{
			{ProcessID: "p_1", ThreadID: "t_1", Value: "2"}, {ProcessID: "p_1", ThreadID: "t_1", Metric: 1, Value: "0.5"},
		}}, {ProbeID: "probe-2", Metrics: 2, Entities: []Entity{named(Process, "p_1")}, Tuples: []Tuple{
			{ProcessID: "p_1", Value: "3"}, {ProcessID: "p_1", Metric: 1, Value: "4"},
		}}},
		document: `
			<measurement>
				<measurement probeId="probe-1">
					<measurement processId="p_1">
						<measurement threadId="t_1"><measurement value="2"/><measurement value="0.5"/></measurement>
					</measurement>
				</measurement>
				<measurement probeId="probe-2"><measurement value="3"/><measurement value="4"/></measurement>
			</measurement>`,
	},
	{
		name:     "a sequential program: all ids are null",
		probes:   []Values{{Metrics: 2, Tuples: []Tuple{{Metric: 0, Value: "1"}, {Metric: 1, Value: "2"}}}},
		document: `<measurement><measurement value="1"/><measurement value="2"/></measurement>`,
	},
	{
		name: "several probes, in the request's order",
		probes: []Values{
			{ProbeID: "probe_2", Metrics: 1, Entities: []Entity{named(Process, "*")}, Tuples: []Tuple{
				{ProcessID: "p_1", Value: "1"}, {ProcessID: "p_2", Value: "2"},
			}},
			{ProbeID: "probe_1", Metrics: 1, Entities: []Entity{named(Process, "*")}, Tuples: []Tuple{{ProcessID: "p_1", Value: "3"}}},
			{ProbeID: "probe_3", Metrics: 1, Entities: []Entity{named(Process, "?")}},
		},
		document: `
			<measurement>
				<measurement probeId="probe_2"><measurement processId="p_1" value="1"/><measurement processId="p_2" value="2"/></measurement>
				<measurement probeId="probe_1" processId="p_1" value="3"/>
				<measurement probeId="probe_3"/>
			</measurement>`,
	},
	{
		name: "several statistics: only MAXIMUM and MINIMUM name an entity, neighbours are merged",
		probes: []Values{{Metrics: 2, Functions: 3, Entities: []Entity{named(Process, "*")}, Tuples: []Tuple{
			{Metric: 0, Function: 0, Value: "10"}, {Metric: 0, Function: 1, ProcessID: "p_1", Value: "6"}, {Metric: 0, Function: 2, ProcessID: "p_1", Value: "6"},
			{Metric: 1, Function: 0, Value: "3"}, {Metric: 1, Function: 1, ProcessID: "p_1", Value: "2"}, {Metric: 1, Function: 2, ProcessID: "p_2", Value: "1"},
		}}},
		document: `
			<measurement>
				<measurement value="10"/>
				<measurement processId="p_1"><measurement value="6"/><measurement value="6"/></measurement>
				<measurement value="3"/>
				<measurement processId="p_1" value="2"/>
				<measurement processId="p_2" value="1"/>
			</measurement>`,
	},
	{
		name:     "a statistic without values",
		probes:   []Values{{Metrics: 1, Functions: 1, Entities: []Entity{named(Process, "*")}}},
		document: `<measurement/>`,
	},
	{
		name: "a value requested twice",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p_1"), named(Process, "*")}, Tuples: []Tuple{
			{ProcessID: "p_1", Value: "1"}, {ProcessID: "p_1", Value: "1"}, {ProcessID: "p_2", Value: "2"},
		}}},
		document: `
			<measurement>
				<measurement value="1"/>
				<measurement processId="p_1" value="1"/>
				<measurement processId="p_2" value="2"/>
			</measurement>`,
	},
	{
		name: "a named thread has its own place after ? and *, wherever they are",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Thread, "?"), named(Thread, "t_2"), named(Process, "*", named(Thread, "?"), named(Thread, "t_1"))}, Tuples: []Tuple{
			{ThreadID: "t_1", Value: "1"}, {ThreadID: "t_2", Value: "2"}, {ThreadID: "t_3", Value: "3"},
			{ProcessID: "p_1", ThreadID: "t_1", Value: "4"}, {ProcessID: "p_1", ThreadID: "t_2", Value: "5"},
		}}},
		document: `
			<measurement>
				<measurement threadId="t_1" value="1"/>
				<measurement threadId="t_3" value="3"/>
				<measurement value="2"/>
				<measurement processId="p_1"><measurement threadId="t_2" value="5"/><measurement value="4"/></measurement>
			</measurement>`,
	},
	{
		name: "? stands for what * does not have",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p_1", named(Thread, "?")), named(Process, "?", named(Thread, "*"))}, Tuples: []Tuple{
			{ProcessID: "p_1", ThreadID: "t_1", Value: "1"}, {ProcessID: "p_1", ThreadID: "t_2", Value: "2"},
		}}},
		document: `
			<measurement>
				<measurement/>
				<measurement processId="p_1"><measurement threadId="t_1" value="1"/><measurement threadId="t_2" value="2"/></measurement>
			</measurement>`,
	},
	{
		name: "a value that no entity asks for is kept",
		probes: []Values{{Metrics: 1, Entities: []Entity{named(Process, "p_1")}, Tuples: []Tuple{
			{ProcessID: "p_1", Value: "1"}, {ProcessID: "p_7", Value: "7"},
		}}},
		document: `<measurement><measurement value="1"/><measurement processId="p_7" value="7"/></measurement>`,
	},
}

var communicators = []Entity{
	named(Communicator, "c1", named(Process, "*")),
	named(Communicator, "c2", named(Process, "*")),
}

func named(kind EntityKind, id string, children ...Entity) Entity {
	return Entity{Kind: kind, ID: id, Children: children}
}

func TestMeasured(t *testing.T) {
	for _, test := range compressions {
		t.Run(test.name, func(t *testing.T) {
			got, err := Marshal(&Measured{Probes: test.probes})
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(strings.FieldsFunc(test.document, func(r rune) bool { return r == '\n' || r == '\t' }), "") + "\n"
			if string(got) != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}
