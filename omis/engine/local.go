package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// localList is an action list prepared to run on the goroutine that owns a process: services and objects
// are looked up, and memory for arguments is allocated. Each subscription has its own, so it needs no lock.
type localList struct {
	csr        *csr
	steps      []localStep
	generation uint64 // of the registry when objects were resolved
	resolved   bool
	replies    bool // the tool wants a reply for each execution
}

type localStep struct {
	*step
	call    service.Call
	targets []*item
	missing omis.ServiceResult // errors of tokens without objects
	dynamic bool               // the objects are event context parameters
}

func newLocalList(c *csr) *localList {
	l := &localList{csr: c, steps: make([]localStep, len(c.steps))}
	for i := range c.steps {
		s := &c.steps[i]
		l.steps[i] = localStep{step: s, call: service.Call{Args: s.args}}
		if s.subject >= 0 {
			l.steps[i].dynamic = hasParams(s.args[s.subject : s.subject+1])
		}
	}
	l.replies = c.wantsReplies()
	return l
}

// wantsReplies reports whether the tool wants replies for executions without errors.
func (c *csr) wantsReplies() bool {
	if c.to == nil || c.to.callback == nil {
		return false
	}
	quiet := !slices.ContainsFunc(c.steps, func(s step) bool { return !s.service.Void() })
	return !quiet || c.to.flags&omis.DontReturnOK == 0
}

// run executes the list while the thread is held.
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
		l.csr.countErrors(reply)
		l.csr.tool.replies.push(l.csr.to, reply)
	}
}

// reply makes a reply without errors.
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

// step executes one action and adds its results to the reply. Without an error, and if no reply is wanted,
// it makes none.
func (l *localList) step(i int, occ *service.Occurrence, at omis.Token, reply omis.Reply) omis.Reply {
	s := &l.steps[i]
	results := l.execute(s, occ)
	if len(results) == 0 {
		return reply
	}
	if reply == nil {
		reply = l.reply(at)
	}
	if s.service.Void() {
		results = onlyErrors(results, len(s.targets)+len(s.missing))
	}
	reply[i+1] = results
	return reply
}

// execute returns the errors of one action, and its values if they are wanted.
func (l *localList) execute(s *localStep, occ *service.Occurrence) (results omis.ServiceResult) {
	defer func() {
		if r := recover(); r != nil {
			results = append(results, l.csr.tool.e.panicked(s.service.Name, r))
		}
	}()
	s.call.Event = occ
	if s.params {
		if err := s.bind(l.csr, occ); err != nil {
			return omis.ServiceResult{failure(err)}
		}
	}
	if s.subject < 0 {
		return l.once(s, nil)
	}
	results = slices.Clone(s.missing)
	for _, it := range s.targets {
		s.call.Token, s.call.Object = it.token, it.value
		results = append(results, l.once(s, it)...)
	}
	return results
}

// once executes an action on one object, or on none.
func (l *localList) once(s *localStep, it *item) omis.ServiceResult {
	values, err := s.do.local(&s.call)
	if err == nil && (!l.replies || s.service.Void()) {
		return nil
	}
	var named []omis.Token
	if it != nil {
		named = []omis.Token{it.token}
	}
	if err != nil {
		return omis.ServiceResult{failure(err, named...)}
	}
	return omis.ServiceResult{{Objects: named, Status: omis.OK, Values: values}}
}

// resolve looks up the objects of a step. Errors are reported at each execution, as for lists that are not
// local.
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
