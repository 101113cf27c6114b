// Package mir defines the language of tools: the documents of MIR (Monitoring and
// Instrumentation Requests), as Go values and as XML.
//
// A request is scanned (limits, no DTD, positions), validated against a schema, and decoded;
// every error carries a position. A streaming encoder writes documents, and compresses
// measurement documents by the rules of MIR 6.
//
// mir imports no C: the validator is an interface, which mir/xsd implements. Of this module it
// imports only omis, because documents show placements as the monitor describes them. Every
// package except omis, sir and schemas may import mir. It starts no goroutines; all functions
// may be called concurrently.
package mir

import (
	"time"

	"slices"

	"mirador/omis"
)

// Document is any MIR document. Root returns the name of its root element.
type Document interface{ Root() string }

// SIRRequest asks for the structure of programs (MIR 2).
type SIRRequest struct {
	Resources []Resource
	Pos       Position // of the root element, as in the other requests
}

// Resource names a program and the file for its structure document.
type Resource struct {
	In, Out string
	Pos     Position
}

// SnapshotRequest asks for the running processes and threads, and their call stacks (MIR 3).
type SnapshotRequest struct {
	Named bool
	Stack int // number of frames; 0: none
	// Goroutines asks for the goroutines of Go programs: the attribute goroutines="true" of
	// the gateway's namespace.
	Goroutines bool
	Pos        Position
}

// Entity is a site, node, communicator, process or thread in a request or a snapshot, with the
// entities inside it.
type Entity struct {
	Kind     EntityKind
	ID       string // an id of a snapshot, or "*" (all), or "?" (the entity that measures)
	Name     string // snapshot only
	Master   bool   // snapshot, threads only
	Stack    []string
	Children []Entity
	// Goroutines are the goroutines of a process, if the request for the snapshot asks for
	// them. They belong to the gateway's namespace.
	Goroutines []Goroutine
	Pos        Position // in a request only
}

// Goroutine is a goroutine of a Go program.
type Goroutine struct {
	ID     string
	State  string // as Go's runtime calls it
	Reason string // why it waits, "" if it does not wait
	Thread string // the id of the thread that runs it, "" if none does
	Stack  []string
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

// Position is a position in a document; the zero Position means that it is unknown.
type Position struct{ Line, Column int }

// Snapshot is the answer to a SnapshotRequest.
type Snapshot struct{ Entities []Entity }

// InstrRequest asks for a probe (MIR 4). A nil pointer means that the element is absent.
type InstrRequest struct {
	Region    *CodeRegion
	Metrics   []Metric
	Events    int // number of <event/> elements
	Measuring *Measuring
	Entities  []Entity
	Activated bool
	Flush     bool
	// Fast asks for the faster, less accurate clock, where there is a choice: the attribute
	// clock="fast" of the gateway's namespace.
	Fast bool
	// OneIn asks to time one in OneIn executions of the region; 0: all. It is the attribute
	// sample="1/N" of the gateway's namespace.
	OneIn int64
	// Percentiles lists the percentiles to report: the attribute percentiles="50 99" of the
	// gateway's namespace.
	Percentiles []float64
	// Budget is the share of the processes' time that the probe may take; 0: no limit. It is
	// an attribute of the gateway's namespace, in percent.
	Budget float64
	// Lease is the time without use after which the probe is removed; 0: never. It is the
	// attribute lease="60s" of the gateway's namespace.
	Lease time.Duration
	// Label is a name for the probe's values in the gateway's metrics; "": they are not
	// there. It is an attribute of the gateway's namespace.
	Label string
	// Key identifies the request if it is sent again; "": it has no key.
	Key string
	// Note is a remark for those who look at the probe; "": none.
	Note string
	// Details asks for the gateway's extensions in the answer: the attribute details="true" of
	// its namespace.
	Details bool
	Pos     Position
}

// Extended reports whether the answer contains the gateway's extensions. The attribute details
// asks for them, and so does any other attribute of the gateway's namespace.
func (r *InstrRequest) Extended() bool {
	return r.Details || r.Budget > 0 || r.Fast || r.OneIn > 0 || len(r.Percentiles) > 0 || r.Lease > 0 || r.Label != "" || r.Note != "" || r.Key != ""
}

// CodeRegion delimits the code to measure: at least one of From and To is set.
type CodeRegion struct {
	From, To string
	Pos      Position
}

// Metric names a metric to measure.
type Metric struct {
	Name string
	Pos  Position
}

// Measuring defines how often to measure and to deliver. A nil pointer means that the
// attribute is absent; all times are in milliseconds.
type Measuring struct {
	Delivery    *int64 // -1: after each measurement
	Destination *string
	Interval    *int64
	Duration    *int64
	Aggregates  []Function // as written, including Last
	Pos         Position
}

// Function is the statistic that an aggregate element asks for.
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
	Budget    float64       // as in InstrRequest; 0: unchanged
	Lease     time.Duration // as in InstrRequest; 0: unchanged
	Details   bool          // as in InstrRequest
	Pos       Position
}

// Extended reports whether the answer contains the gateway's extensions.
func (r *ControlRequest) Extended() bool { return r.Details || r.Budget > 0 || r.Lease > 0 }

// ProbeRef names a probe in a request by its id, or all probes of the application with a label.
type ProbeRef struct {
	ID    string
	Label string // if ID is ""; an extension of the gateway
	Pos   Position
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

// Probe is the answer to an InstrRequest, and to a ControlRequest that changes a probe.
// Everything except the id is in the gateway's namespace, and only requests that ask for
// extensions receive it: by the DTD of MIR 4 a probe is EMPTY.
type Probe struct {
	ID         string
	Placements []omis.Placement
	Cost       *Cost  // nil: not known
	Notice     string // what happened to the probe without a request, or what it does not measure
}

// Cost is the cost of a probe to the processes that it measures: the total since its
// activation, and the current rates.
type Cost struct {
	Hits     int64   `json:"hits"`
	Lost     int64   `json:"lost"`
	Rate     float64 `json:"hits_per_second"` // recent
	PerHit   float64 `json:"ns_per_hit"`
	Share    float64 `json:"share"`            // recent part of the processes' time, from 0 to 1
	Dilation float64 `json:"dilation"`         // recent time with the probe, divided by the time without it
	Budget   float64 `json:"budget,omitempty"` // the share that it may take; 0: no limit
	Rough    bool    `json:"rough,omitempty"`  // PerHit is not precise, or Share is so great that Dilation is not
}

// Explain is the answer to a request with the header "Prefer: explain": the requests that the gateway
// would send to the monitor. It is an extension of the gateway, not a document of MIR.
type Explain struct {
	Requests []ExplainedRequest
	Matches  int     // number of places of the program that the request matches
	Cost     float64 // predicted nanoseconds per execution of the region; 0: unknown
	Rough    bool    // some part of Cost is rough
	Notice   string  // what the request does not measure that its region's name may suggest
}

// ExplainedRequest is a request in OMIS notation and its placement, which is zero for a request
// that is executed once.
type ExplainedRequest struct {
	Text      string
	Placement omis.Placement
}

// Errors is the answer to a failed request. Every message begins with its position in the
// request, if that is known.
type Errors struct{ Messages []string }

// Measurement is an element of a measurement document (MIR 6), already sorted and compressed;
// see Measured.
type Measurement struct {
	ProbeID, SiteID, NodeID, CommunicatorID, ProcessID, ThreadID string
	Value                                                        string // a decimal; "" if the element has no value
	Notice                                                       string // of the gateway: why no more values will follow
	Sample                                                       *Sample
	Spread                                                       *Spread
	Occurrence                                                   *Occurrence // in the root only
	Children                                                     []Measurement
}

// PositionOf returns the position of a request, for errors that concern all of it. It returns
// the zero Position for an answer.
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
func (*Measured) Root() string        { return measurementName }
func (*Explain) Root() string         { return "explain" }

// Defaults reports whether the request only sets defaults for later requests: it holds nothing
// but measuring, and creates no probe (MIR 4).
func (r *InstrRequest) Defaults() bool {
	return r.Measuring != nil && r.Region == nil && len(r.Metrics) == 0 && r.Events == 0 && len(r.Entities) == 0
}

// Functions returns the statistics that were asked for. None means the last measured value.
func (m *Measuring) Functions() []Function {
	if m == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.Aggregates), func(f Function) bool { return f == Last })
}
