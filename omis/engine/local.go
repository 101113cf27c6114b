package engine

import (
	"fmt"
	"strings"

	"mirador/omis"
	"mirador/omis/service"
)

// localList is an action list made ready to run on the goroutine that owns a
// process: services are looked up, objects resolved, space for arguments
// allocated. Each subscription has one of its own, so it needs no lock.
type localList struct {
	csr        *csr
	steps      []localStep
	generation uint64 // of the registry when objects were resolved
	resolved   bool
	replies    bool // the tool wants to hear of every execution
}

type localStep struct {
	*step
	call    service.Call
	targets []*item
	missing omis.ServiceResult // tokens that stand for nothing
	dynamic bool               // the objects are event context parameters
}

func newLocalList(c *csr) *localList {
	l := &localList{csr: c, steps: make([]localStep, len(c.steps))}
	quiet := true
	for i := range c.steps {
		s := &c.steps[i]
		l.steps[i] = localStep{step: s, call: service.Call{Args: s.args}}
		if s.subject >= 0 {
			l.steps[i].dynamic = hasParams(s.args[s.subject : s.subject+1])
		}
		quiet = quiet && s.service.Void()
	}
	l.replies = c.to.callback != nil && (!quiet || c.to.flags&omis.DontReturnOK == 0)
	return l
}

// run executes the list. The thread that was hit is held meanwhile.
func (l *localList) run(occ *service.Occurrence, at omis.Token) {
	if !l.csr.active.Load() {
		return
	}
	if g := l.csr.tool.e.reg.generation.Load(); !l.resolved || g != l.generation {
		l.generation, l.resolved = g, true
		for i := range l.steps {
			l.steps[i].resolve(l.csr.tool)
		}
	}
	var reply omis.Reply
	if l.replies {
		reply = l.reply(at)
	}
	for i := range l.steps {
		reply = l.step(i, occ, at, reply)
	}
	if reply != nil {
		l.csr.note(reply)
		l.csr.tool.replies.push(l.csr.to, reply)
	}
}

// reply is one that says that all went well.
func (l *localList) reply(at omis.Token) omis.Reply {
	r := make(omis.Reply, 1+len(l.steps))
	r[0] = omis.ServiceResult{l.csr.triggered(at)}
	for i := range l.steps {
		if l.steps[i].service.Void() {
			r[i+1] = omis.ServiceResult{done()}
		}
	}
	return r
}

// step executes one action and adds to the reply what there is to say; where
// nobody wants to hear of it, that is nothing as long as all goes well.
func (l *localList) step(i int, occ *service.Occurrence, at omis.Token, reply omis.Reply) (out omis.Reply) {
	s := &l.steps[i]
	out = reply
	add := func(results ...omis.ObjectResult) {
		if out == nil {
			out = l.reply(at)
		}
		out[i+1] = append(results, out[i+1]...)
	}
	defer func() {
		if r := recover(); r != nil {
			l.csr.tool.e.log.Error("local action panicked", "service", s.service.Name, "panic", r)
			add(internalError(s.service.Name, r))
		}
	}()
	s.call.Event = occ
	if s.params {
		if err := s.bind(l.csr, occ); err != nil {
			add(failure(err))
			return out
		}
	}
	if len(s.missing) > 0 {
		add(s.missing...)
	}
	if s.subject < 0 {
		values, err := s.do.local(&s.call)
		switch {
		case err != nil:
			add(failure(err))
		case l.replies && !s.service.Void():
			add(omis.ObjectResult{Status: omis.OK, Values: values})
		}
		return out
	}
	for _, it := range s.targets {
		s.call.Token, s.call.Object = it.token, it.value
		values, err := s.do.local(&s.call)
		switch {
		case err != nil:
			add(failure(err, it.token))
		case l.replies && !s.service.Void():
			add(omis.ObjectResult{Objects: []omis.Token{it.token}, Status: omis.OK, Values: values})
		}
	}
	return out
}

// resolve looks up the objects of a step. Whatever is wrong with them is reported
// each time the list is executed, as it would be in the engine.
func (s *localStep) resolve(t *Tool) {
	if s.subject < 0 || s.dynamic {
		return
	}
	s.find(t, s.args[s.subject])
}

func (s *localStep) find(t *Tool, v omis.Value) {
	conv := conversions{tool: t}
	objs, missing := conv.objects(v, s.service.Params[s.subject])
	s.missing, s.targets = missing, s.targets[:0]
	for _, o := range objs {
		s.targets = append(s.targets, o.(*item))
	}
}

// bind puts the values of event context parameters into the arguments.
func (s *localStep) bind(c *csr, occ *service.Occurrence) error {
	x := execution{csr: c, occ: occ}
	args, err := x.bind(s.args)
	if err != nil {
		return err
	}
	if err := checkTypes(s.step, args); err != nil {
		return err
	}
	s.call.Args = args
	if s.dynamic {
		s.find(c.tool, args[s.subject])
	}
	return nil
}

// Placement says where the actions of a request run, and why there.
type Placement struct {
	// Name is "request" for an unconditional request, "monitor" for events of the
	// monitor itself, "trap" for events of the program.
	Name  string
	Where string
	Why   string

	local bool
}

func (p Placement) String() string { return fmt.Sprintf("%s, %s: %s", p.Name, p.Where, p.Why) }

// place chooses where a request's actions run.
func (e *Engine) place(r *omis.Request, steps []step) Placement {
	if r.Event == nil {
		return Placement{Name: "request", Where: "in the engine", Why: "it is executed once, at once"}
	}
	src := e.sources[r.Event.Service]
	if src.kind == 0 {
		return Placement{Name: "monitor", Where: "in the engine", Why: r.Event.Service + " is an event of the monitor itself"}
	}
	const held = "in the engine, with the thread held until the list is done"
	if r.Locked {
		return Placement{Name: "trap", Where: held, Why: "a locked list must wait until no other list is executed"}
	}
	if src.kind == omis.EventProcCreated {
		return Placement{Name: "trap", Where: held, Why: "the node must be asked who the new process is"}
	}
	for i := range steps {
		if !steps[i].isLocal() {
			return Placement{Name: "trap", Where: held, Why: steps[i].service.Name + " needs more than the event itself"}
		}
	}
	return Placement{
		Name: "trap", Where: "in the monitor's owner thread of the process",
		Why: "all actions are local: they need nothing but the event itself", local: true,
	}
}

// isLocal tells whether the table and the implementation allow the step to run
// on the owner of a process. Only the objects of extensions can be had without the
// node; their classes have a prefix.
func (s *step) isLocal() bool {
	if !s.service.Local || s.do.local == nil {
		return false
	}
	return s.subject < 0 || strings.Contains(string(s.service.Object), "_")
}
