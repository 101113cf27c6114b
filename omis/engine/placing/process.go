package placing

import (
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Machine is a node, as far as placements are concerned.
type Machine struct {
	node.Node
	Can  program.Capabilities
	Skew int64 // what to add to its clock to get the home node's
}

// keepers returns the placements whose programs can outlive the monitor.
func (n *Machine) keepers() []program.Keeper {
	var list []program.Keeper
	for _, p := range n.Can.Placers {
		if k, ok := p.(program.Keeper); ok {
			list = append(list, k)
		}
	}
	return list
}

// Process is a process, as far as placements are concerned. The engine's lock for instrumentation guards it,
// except cpu.
type Process struct {
	Token omis.Token
	Host  ProcessHost

	cpu      clock
	programs map[*Request]*Subscription   // all that are placed, active or not
	together map[spot]int                 // how many programs are at one place
	victims  map[*Request][]*Subscription // by the request that is in their way: see rechoose.go
	tries    map[*Request]int             // how often requests were tried again
	still    bool                         // it is suspended while requests move
	moving   []*Request                   // what moves while it is suspended
	feeds    map[feedKey]*feed
	sources  map[service.Cell]int // how many programs read a cell
}

// NewProcess makes a process without programs.
func NewProcess(token omis.Token, host ProcessHost) Process {
	return Process{Token: token, Host: host, programs: make(map[*Request]*Subscription)}
}

// ProcessHost is the engine's side of a process.
type ProcessHost interface {
	// At returns the node that the process lives on, and the id of the process there.
	At() (*Machine, omis.ProcID)
	// InTheWay reports why no program of a request can be placed beside what the monitor executes in the
	// process. It ignores subscriptions in leaving, which will be placed again.
	InTheWay(r *Request, leaving map[*Subscription]bool) error
	// Freeze suspends the process, and returns a function that resumes it.
	Freeze() (thaw func())
	// ThreadOf returns the token of the thread that a row belongs to, which is always the same. Its
	// arguments are fields of the row: a pointer to the row would keep it on the heap. Any goroutine may
	// call ThreadOf without the lock.
	ThreadOf(tid int, started uint64, alive bool) omis.Token
	// RememberThreads keeps the tokens of threads that end, for rows that are read later.
	RememberThreads()
}

func (p *Process) machine() *Machine {
	n, _ := p.Host.At()
	return n
}

func (p *Process) id() omis.ProcID {
	_, id := p.Host.At()
	return id
}

// HasPrograms reports whether programs are placed in the process.
func (p *Process) HasPrograms() bool { return len(p.programs) > 0 }

// Stores returns the stores of the programs in the process.
func (p *Process) Stores() []program.Store {
	list := make([]program.Store, 0, len(p.feeds))
	for _, f := range p.feeds {
		list = append(list, f.store)
	}
	return list
}

// feedsAny reports whether programs in the process change a cell.
func (p *Process) feedsAny(cell service.Cell) bool {
	return slices.ContainsFunc(p.machine().Can.Placers, func(placer program.Placer) bool { return p.feeds[feedKey{placer, cell}] != nil })
}

// clock caches how much CPU time a process has used.
type clock struct {
	mu   sync.Mutex
	ns   float64
	read time.Time
}

// fresh is how long a cached time is used: thousands of requests may ask at the same time.
const fresh = time.Millisecond

// time reads the clock. It stands still when the process has ended.
func (c *clock) time(p *Process) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.read) < fresh {
		return c.ns
	}
	n, id := p.Host.At()
	if info, err := n.ProcInfo(id, node.ProcTotalTime); err == nil {
		c.ns = float64(info.TotalTime)
	}
	c.read = time.Now()
	return c.ns
}
