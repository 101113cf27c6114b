package engine

import (
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/program"
	"mirador/omis/service"
)

// join adds nodes to the engine.
func (e *Engine) join(nodes []program.Machine, extensions []service.Extension) error {
	for _, n := range nodes {
		if n.Name() == "" || e.nodeNamed(n.Name()) != nil {
			return fmt.Errorf("cannot join a node called %q: names of nodes must differ", n.Name())
		}
		can := n.Capabilities()
		for _, x := range extensions {
			if p, ok := x.(service.Provider); ok {
				p.Provide(n, &can)
			}
		}
		joined := e.reg.add(omis.ClassNode, func(i ident) object { return &machine{ident: i, Machine: placing.Machine{Node: n, Can: can}} }).(*machine)
		e.nodes = append(e.nodes, joined)
	}
	e.home = e.nodes[0]
	for _, n := range e.nodes[1:] {
		n.synchronise(e.home)
	}
	return nil
}

func (e *Engine) nodeNamed(name string) *machine {
	if i := slices.IndexFunc(e.nodes, func(n *machine) bool { return n.Name() == name }); i >= 0 {
		return e.nodes[i]
	}
	return nil
}

// synchronise compares the clock of a node with that of the home node. OMIS 7.2.4 requires them to agree up
// to the time that a message takes.
func (n *machine) synchronise(home *machine) {
	before := home.Now()
	there := n.Now()
	after := home.Now()
	n.Skew = before + (after-before)/2 - there
}

// clock reads the clock of the node, in the time of the home node.
func (n *machine) clock() int64 { return n.Now() + n.Skew }

// lacking returns what no node can do, by the services that need it.
func (e *Engine) lacking() map[string]service.Support {
	lacks := make(map[string]service.Support)
	for _, t := range e.catalog.Tables() {
		for i := range t.Services {
			s := &t.Services[i]
			if s.Needs != 0 && !slices.ContainsFunc(e.nodes, func(n *machine) bool { return n.has(s.Needs) }) {
				lacks[s.Name] = s.LackOf()
				continue
			}
			if err := e.undetected(e.sources[s.Name]); err != nil {
				lacks[s.Name] = service.Support{Level: service.Unsupported, Reason: err.Error()}
			}
		}
	}
	return lacks
}

func (n *machine) has(c service.Capability) (ok bool) {
	switch c {
	case service.Registers:
		ok = n.Can.Registers != nil
	case service.MemoryWriting:
		ok = n.Can.MemoryWriter != nil
	case service.Suspending:
		ok = n.Can.Suspender != nil
	case service.ThreadControl:
		ok = n.Can.ThreadControl != nil
	case service.NodeInformation:
		ok = n.Can.NodeInformer != nil
	case service.Checkpointing:
		ok = n.Can.Checkpointer != nil
	case service.Messages:
		ok = n.Can.MessagePassing != nil
	}
	return ok
}

// undetected reports why no node detects an event. It returns nil if some node does or may.
func (e *Engine) undetected(src source) (why error) {
	if src.kind == 0 || src.kind >= firstOfEngine {
		return nil
	}
	for _, n := range e.nodes {
		d, tells := declared(n.Can.Detector)
		if !tells {
			return nil
		}
		if why = d.CanDetect(src.kind); why == nil {
			return nil
		}
	}
	return why
}

// Available returns the table of all services. Services that no machine can perform at present are marked
// as unsupported.
func (e *Engine) Available() *service.Catalog {
	lacks := make(map[string]service.Support)
	for _, t := range e.catalog.Tables() {
		for i := range t.Services {
			s := &t.Services[i]
			if s.Support.Level == service.Unsupported {
				continue
			}
			if err := e.unequipped(s); err != nil {
				lacks[s.Name] = service.Support{Level: service.Unsupported, Reason: err.Error()}
			}
		}
	}
	return e.catalog.Without(lacks)
}

// unequipped reports what the machines of all nodes lack for a service, nil if one of them lacks nothing.
func (e *Engine) unequipped(s *service.Service) (why error) {
	kind := e.sources[s.Name].kind
	event := kind != 0 && kind < firstOfEngine
	if !event && s.Needs != service.Checkpointing {
		return nil
	}
	for _, n := range e.nodes {
		machine, ok := declared(n.Can.Equipment)
		switch {
		case s.Needs != 0 && !n.has(s.Needs):
			continue
		case !ok:
			return nil
		case s.Needs == service.Checkpointing:
			why = machine.LacksForCheckpoint()
		default:
			why = machine.LacksForEvent(kind)
		}
		if why == nil {
			return nil
		}
	}
	return why
}

// check returns what is wrong with a request: what the machines lack for it, otherwise what the table says.
func (e *Engine) check(r *omis.Request) []service.Fault {
	calls := r.Actions
	if r.Event != nil {
		calls = append([]omis.Call{*r.Event}, calls...)
	}
	var faults []service.Fault
	for i := range calls {
		s := e.catalog.Lookup(calls[i].Service)
		if s == nil || s.Support.Level == service.Unsupported {
			continue
		}
		if err := e.unequipped(s); err != nil {
			faults = append(faults, service.Fault{Pos: calls[i].Pos, Status: omis.UnsupportedService, Msg: s.Name + " is not supported: " + err.Error()})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return e.catalog.Check(r)
}
