package omis

import (
	"fmt"
	"time"
)

// Trap is the name of the placement where threads are held for the monitor.
const Trap = "trap"

// Placement describes where the actions of a request run, and the reason.
type Placement struct {
	// Name is "request" for an unconditional request, "monitor" for events of the monitor
	// itself, or else the name of the placement of its programs, or Trap.
	Name  string
	Where string // for users
	Why   string // reason why it is not a cheaper placement
	// Cost is the time in nanoseconds that an occurrence takes from the thread; 0 if it
	// is not known.
	Cost     float64
	Measured bool   // Cost was measured on this machine; otherwise it is a rough prediction
	Kind     string // kind of place, which determines Cost; for a held thread, the way it is held
	OneIn    int64  // number of occurrences for each one that is timed
	Bias     int64  // nanoseconds subtracted from the intervals that it opens or closes
	// Local reports that the actions need nothing but the event itself.
	Local bool
}

// Rough reports whether Cost is imprecise: it was not measured on this machine, or threads are
// held, which takes a time that depends on the machine's other load.
func (p Placement) Rough() bool { return p.Cost > 0 && (!p.Measured || p.Name == Trap) }

// String returns the placement in one line.
func (p Placement) String() string { return fmt.Sprintf("%s, %s: %s", p.Name, p.Where, p.Why) }

// Explanation describes what a request would do, or does.
type Explanation struct {
	Token     Token  // what reasons call a conditional request that is only explained
	Request   string // in canonical form
	Placement Placement
	Points    []Point // what the request watches in the tool's present scope
	Enabled   bool
	Failed    uint64 // executions with an error that no callback received
	// Missed is when the request last may have missed events, because it took too long to move to
	// another placement; zero if never.
	Missed time.Time
}

// Point is a place that a request watches.
type Point struct {
	Event string
	Proc  Token
	Addr  uint64 // 0 if the event has no address
}
