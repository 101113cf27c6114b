package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// The services for user defined events (OMIS 8.2.2).

func userEventCreate(x *execution, _ *call) ([]omis.Value, error) {
	o := x.e.reg.add(omis.ClassUserEvent, func(i ident) object { return &userEvent{ident: i, tool: x.tool} })
	x.tool.keep(o, func() { x.tool.events = append(x.tool.events, o.(*userEvent)) })
	return []omis.Value{omis.TokenValue(o.Token())}, nil
}

func userEventDestroy(x *execution, c *call) ([]omis.Value, error) {
	x.e.reg.remove(c.object.Token())
	x.tool.mu.Lock()
	defer x.tool.mu.Unlock()
	x.tool.events = slices.DeleteFunc(x.tool.events, func(v *userEvent) bool { return v == c.object })
	return nil, nil
}

// userEventRaise executes the lists that wait for the event. In an action list with resume zero it executes
// them at once, so that the held object stays held until they are done. With resume not zero they wait in a
// queue, and the event belongs to no object. In an unconditional request no object is held, and the lists
// are done when the reply is sent.
func userEventRaise(x *execution, c *call) ([]omis.Value, error) {
	v := c.object.(*userEvent)
	resume, err := c.int(2)
	if err != nil {
		return nil, err
	}
	occ := service.Occurrence{
		Node: x.e.home.token, Proc: omis.Undefined, Thread: omis.Undefined,
		Time: x.e.now(), Now: x.e.now, Params: c.args[1].List,
	}
	if x.occ == nil {
		return nil, x.raiseNow(v, &occ)
	}
	if resume == 0 {
		occ.Proc, occ.Thread, occ.Node = x.occ.Proc, x.occ.Thread, x.occ.Node
		occ.Time, occ.At, occ.Now, occ.Held = x.occ.Time, x.occ.At, x.occ.Now, x.occ.Held
		return nil, x.raiseNow(v, &occ)
	}
	if !x.tool.raised.push(func() { v.raise(&occ, nil) }, false) {
		return nil, omis.Errorf(omis.NoMemory, "%s was not raised: %d events wait already", v.token, maxPending)
	}
	return nil, nil
}

// raiseNow executes the lists while the list that raises the event waits.
func (x *execution) raiseNow(v *userEvent, occ *service.Occurrence) error {
	if x.nested >= maxNesting {
		return omis.Errorf(omis.ParameterError, "%s was not raised: user events are nested deeper than %d", v.token, maxNesting)
	}
	x.unlockForNested()
	defer x.lockAfterNested()
	v.raise(occ, x)
	return nil
}

// raise executes the requests for the event in the order of their definition.
func (v *userEvent) raise(occ *service.Occurrence, outer *execution) {
	for _, c := range v.tool.requests() {
		if c.active.Load() && c.event.source.user && c.event.tokens()[0].Token() == v.token {
			c.trigger(occ, v.token, outer)
		}
	}
}
