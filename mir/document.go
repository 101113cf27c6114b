// Package mir is the language tools speak: the documents of MIR (Monitoring and
// Instrumentation Requests), as Go values and as XML.
//
// A request goes scan (bounds, no DTD, positions) -> validation by a schema ->
// decode; every error says where it is. The other way, documents are written by
// a streaming encoder, measurement documents by the rules of MIR 6.
//
// mir imports nothing of ours, and no C: the validator comes in by an
// interface, and is mir/xsd's. Every package but omis, sir and schemas may
// import mir. It starts no goroutines; everything may be called concurrently.
package mir

import "slices"

// Document is any MIR document. Root is its root element's name.
type Document interface{ Root() string }

// SIRRequest asks for the structure of programs (MIR 2).
type SIRRequest struct {
	Resources []Resource
	Pos       Position // of the root element, as in the other requests
}

// Resource names a program and where to write it back.
type Resource struct {
	In, Out string
	Pos     Position
}

// SnapshotRequest asks who is running and where they stand (MIR 3).
type SnapshotRequest struct {
	Named bool
	Stack int // how many frames; 0: none
	Pos   Position
}

// Entity is a site, node, communicator, process or thread of a request or a
// snapshot, with the entities inside it.
type Entity struct {
	Kind     EntityKind
	ID       string // a snapshot's id, or "*" (all), or "?" (the one that measures)
	Name     string // snapshot only
	Master   bool   // snapshot, threads only
	Stack    []string
	Children []Entity
	Pos      Position // in a request
}

// EntityKind is the element name of an entity.
type EntityKind string

const (
	Site         EntityKind = "site"
	Node         EntityKind = "node"
	Communicator EntityKind = "communicator"
	Process      EntityKind = "process"
	Thread       EntityKind = "thread"
)

// Position is a place in a document; the zero Position is no place.
type Position struct{ Line, Column int }

// Snapshot answers a SnapshotRequest.
type Snapshot struct{ Entities []Entity }

// InstrRequest asks for a probe (MIR 4). A nil pointer is an element that is not
// there.
type InstrRequest struct {
	Region    *CodeRegion
	Metrics   []Metric
	Events    int // how many <event/> elements
	Measuring *Measuring
	Entities  []Entity
	Activated bool
	Flush     bool
	// Fast asks for times to be taken by the quicker and less certain clock, where there
	// is a choice: the attribute clock="fast" of the gateway's namespace.
	Fast bool
	// OneIn is how many executions of the region there are for one that is timed; 0: all
	// are timed. It is the attribute sample="1/N" of the gateway's namespace.
	OneIn int64
	// Percentiles are the percentages of which it is to be told how long they took at
	// most: the attribute percentiles="50 99" of the gateway's namespace.
	Percentiles []float64
	// Budget is the share of the processes' time that the probe may take; 0: any. It is
	// an attribute of the gateway's namespace, in percent.
	Budget float64
	// Details asks for an answer with the gateway's extensions: the attribute details="true"
	// of its namespace.
	Details bool
	Pos     Position
}

// Extended reports whether the request asks for the extensions of the gateway in its answer:
// by the attribute for that, or by any other one of the gateway's namespace.
func (r *InstrRequest) Extended() bool {
	return r.Details || r.Budget > 0 || r.Fast || r.OneIn > 0 || len(r.Percentiles) > 0
}

// CodeRegion delimits what to measure: at least one of From and To is set.
type CodeRegion struct {
	From, To string
	Pos      Position
}

// Metric names what to measure.
type Metric struct {
	Name string
	Pos  Position
}

// Measuring says how often to measure and to deliver. Nil pointers are
// attributes that are not there; all times are milliseconds.
type Measuring struct {
	Delivery    *int64 // -1: every time it is measured
	Destination *string
	Interval    *int64
	Duration    *int64
	Aggregates  []Function // as written: Last is in it, too
	Pos         Position
}

// Function is the statistic of an aggregate element.
type Function string

const (
	Last     Function = "" // an aggregate element without function: no statistic
	Average  Function = "AVERAGE"
	Maximum  Function = "MAXIMUM"
	Minimum  Function = "MINIMUM"
	Sum      Function = "SUM"
	Variance Function = "VARIANCE"
)

// ControlRequest reads or changes probes (MIR 5).
type ControlRequest struct {
	Action    Action
	Probes    []ProbeRef
	Metrics   []Metric
	Measuring *Measuring
	Entities  []Entity
	Flush     bool
	Budget    float64 // as of an InstrRequest; 0: the one there was
	Details   bool    // as of an InstrRequest
	Pos       Position
}

// Extended reports whether the request asks for the extensions of the gateway in its answer.
func (r *ControlRequest) Extended() bool { return r.Details || r.Budget > 0 }

// ProbeRef names a probe in a request.
type ProbeRef struct {
	ID  string
	Pos Position
}

// Action is what a control request does.
type Action string

const (
	Value      Action = "VALUE"
	Activate   Action = "ACTIVATE"
	Deactivate Action = "DEACTIVATE"
	Reset      Action = "RESET"
	Remove     Action = "REMOVE"
)

// Probe answers an InstrRequest, and a ControlRequest that changes a probe. All but the id
// goes into the gateway's namespace, and only to those who ask for it: by the DTD of MIR 4 a
// probe is EMPTY.
type Probe struct {
	ID         string
	Placements []Placement
	Cost       *Cost  // nil: not known
	Notice     string // what became of the probe without being asked for
}

// Cost is what a probe has cost the processes that it measures since it was activated,
// and what it costs them now.
type Cost struct {
	Hits, Lost int64
	Rate       float64 // hits a second, lately
	PerHit     float64 // nanoseconds
	Share      float64 // of the processes' time, lately
	Dilation   float64 // of that time: with the probe, over without it
	Budget     float64 // the share that it may take; 0: any
	Rough      bool    // PerHit was not measured on this machine
}

// Placement is where a request of the monitor runs, and what that costs.
type Placement struct {
	Where string  // "inline", "kernel", "trap"
	Why   string  // why not somewhere cheaper; "" if there is nothing cheaper
	Cost  float64 // predicted nanoseconds a hit; 0: not known
	// Bias is what was taken off each time that is reported, in nanoseconds, because it
	// was the probe's and not the program's.
	Bias     float64
	Measured bool // Cost was measured on this machine
}

// Explain answers a request that was sent to be explained: what would be asked
// of the monitor, without asking it. It is the gateway's own, not MIR's.
type Explain struct {
	Requests []ExplainedRequest
	Matches  int     // how many places of the program the request means
	Cost     float64 // predicted nanoseconds for an execution of the region; 0: not known
}

// ExplainedRequest is a request in OMIS notation and where it would run. Where
// is empty for a request that is executed once.
type ExplainedRequest struct {
	Text string
	Placement
}

// Errors answers a request that failed. Every message begins with where it is
// in the request, where that is known.
type Errors struct{ Messages []string }

// Measurement is a measurement document (MIR 6): already sorted and compressed,
// see Compress.
type Measurement struct {
	ProbeID, SiteID, NodeID, CommunicatorID, ProcessID, ThreadID string
	Value                                                        string // a decimal, "" where the element carries none
	Notice                                                       string // of the gateway: why there will be no more
	Sample                                                       *Sample
	Spread                                                       *Spread
	Children                                                     []Measurement
}

// PositionOf returns where a request begins: the place of an error that is about all of it.
// It is the zero Position for an answer.
func PositionOf(d Document) Position {
	switch d := d.(type) {
	case *SIRRequest:
		return d.Pos
	case *SnapshotRequest:
		return d.Pos
	case *InstrRequest:
		return d.Pos
	case *ControlRequest:
		return d.Pos
	}
	return Position{}
}

func (*SIRRequest) Root() string      { return "sirreq" }
func (*SnapshotRequest) Root() string { return "snapshotreq" }
func (*InstrRequest) Root() string    { return "instrreq" }
func (*ControlRequest) Root() string  { return "ctrlreq" }
func (*Snapshot) Root() string        { return "snapshot" }
func (*Probe) Root() string           { return "probe" }
func (*Errors) Root() string          { return "errors" }
func (*Measurement) Root() string     { return "measurement" }
func (*Explain) Root() string         { return "explain" }

// Defaults tells whether the request sets new defaults for later ones: it holds
// measuring alone, and no probe comes of it (MIR 4).
func (r *InstrRequest) Defaults() bool {
	return r.Measuring != nil && r.Region == nil && len(r.Metrics) == 0 && r.Events == 0 && len(r.Entities) == 0
}

// Functions are the statistics asked for; none means the last value measured.
func (m *Measuring) Functions() []Function {
	if m == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.Aggregates), func(f Function) bool { return f == Last })
}
