package engine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/program"
	"mirador/omis/service"
)

// object is what a token stands for. Objects are compared by identity.
type object interface {
	Token() omis.Token
	Class() omis.Class
	number() int // objects of one class are sorted by it
}

// ident is the token of an object, and its number.
type ident struct {
	token omis.Token
	num   int
}

func (i ident) Token() omis.Token { return i.token }
func (i ident) Class() omis.Class { return i.token.Class() }
func (i ident) number() int       { return i.num }

// machine is a node of this engine.
type machine struct {
	ident
	placing.Machine
	lists sync.RWMutex // see the package comment
}

// Capabilities returns the capabilities of the node, including those that extensions provide.
func (n *machine) Capabilities() program.Capabilities { return n.Can }

// machineOf returns the machine of an object.
func (e *Engine) machineOf(t omis.Token) (program.Machine, error) {
	n := nodeOf(e.reg.lookup(t))
	if n == nil {
		return nil, omis.Errorf(omis.UnknownObject, "no node has an object %s", t)
	}
	return n, nil
}

// declared returns a capability, and reports whether the node has it.
func declared[C comparable](c C) (C, bool) {
	var none C
	return c, c != none
}

// capability returns a capability that a service needs.
func capability[C comparable](n *machine, c C, s *service.Service) (C, error) {
	if _, able := declared(c); !able {
		return c, omis.Errorf(omis.UnsupportedService, "%s is not supported on %s: %s", s.Name, n.Name(), s.Needs.Missing())
	}
	return c, nil
}

// process is a process of a node. It keeps its token for life, also when tools detach from it or it moves
// to another node.
type process struct {
	ident
	where atomic.Pointer[place]
	queue *queue // executes the action lists of its events, in order

	tools    int                 // number of tools attached to it; guarded by Engine.admin
	points   map[pointKey]*point // guarded by Engine.admin
	released []*thread           // threads that the node does not observe; guarded by Engine.admin
	ended    bool                // guarded by registry.mu
	threads  map[int]*thread     // by thread id; guarded by registry.mu
	halts    halts

	programs  placing.Process       // its programs
	roaming   int                   // number of points whose breakpoints may be anywhere; guarded by Engine.admin
	rowTokens map[rowKey]omis.Token // of rows of stores; guarded by registry.mu
	hasRow    map[omis.Token]bool   // the threads in rowTokens; guarded by registry.mu
	former    map[int]omis.Token    // tokens of ended threads, while rows may need them; guarded by registry.mu
	pruning   bool                  // prune is about to run; guarded by registry.mu
	pruneAt   int                   // the number of remembered threads at which prune runs; guarded by registry.mu
}

// place is the node of a process, and its identity there.
type place struct {
	node *machine
	id   omis.ProcID
}

func (p *process) at() *place     { return p.where.Load() }
func (p *process) node() *machine { return p.at().node }

type thread struct {
	ident
	proc *process
	tid  int
	life atomic.Uint64 // see node.Hit
}

// item is an object of a class of an extension.
type item struct {
	ident
	class *service.Class
	tool  *Tool
	value any
}

// userEvent is a user defined event (OMIS 8.2.2).
type userEvent struct {
	ident
	tool *Tool
}

// sortObjects sorts objects of one class by the numbers of their tokens.
func sortObjects[O object](list []O) {
	slices.SortFunc(list, func(a, b O) int { return a.number() - b.number() })
}

// mapped returns the results of a function for the elements of a list.
func mapped[A, B any](list []A, to func(A) B) []B {
	results := make([]B, len(list))
	for i, a := range list {
		results[i] = to(a)
	}
	return results
}

func tokenOf(c omis.Class, num int) omis.Token { return omis.Token(fmt.Sprintf("%s_%d", c, num)) }

// nodeOf returns the node of an object, nil for objects of the monitor.
func nodeOf(o object) *machine {
	switch o := o.(type) {
	case *machine:
		return o
	case *process:
		return o.node()
	case *thread:
		return o.proc.node()
	case *queueObject:
		return o.proc.node()
	case *messageObject:
		return o.node
	}
	return nil
}
