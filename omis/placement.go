package omis

import "fmt"

// Placement says where the actions of a request run, and why there.
type Placement struct {
	// Name is "request" for an unconditional request, "monitor" for events of the
	// monitor itself, and else the name of the placement of its programs, or "trap".
	Name  string
	Where string // in words
	Why   string // there, and not where it were cheaper
	// Cost is how many nanoseconds an occurrence takes of the thread; 0: not known.
	Cost     float64
	Measured bool   // Cost was measured on this machine; else it is a rough prediction
	Kind     string // the kind of place, by which Cost is known; of a thread that is held, how
	OneIn    int64  // how many occurrences there are for each one that is timed
	// Local reports that the actions need nothing but the event itself.
	Local bool
}

// String returns the placement in one line.
func (p Placement) String() string { return fmt.Sprintf("%s, %s: %s", p.Name, p.Where, p.Why) }

// Explanation says what a request would do, or does.
type Explanation struct {
	Request   string // in canonical form
	Placement Placement
	Points    []Point // what the request watches in the tool's scope as it is now
	Enabled   bool
	Failed    uint64 // executions with an error that no callback received
	Bias      int64  // what is subtracted from the intervals that it opens or closes, in nanoseconds
}

// Point is a place that a request watches.
type Point struct {
	Event string
	Proc  Token
	Addr  uint64 // 0 where the event has no address
}
