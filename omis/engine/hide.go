package engine

import (
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// thread_detach (OMIS 8.1.3): the thread is hidden from the tool, and where no
// other tool is attached the node is asked to let go of it. There is no way back
// but to detach from the process and to attach again.

func threadDetach(x *execution, c *call) ([]omis.Value, error) {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	t := c.object.(*thread)
	x.tool.hide(t)
	own := owner{x.tool}
	x.e.placing.EvictAll(&t.proc.programs, "the tool has detached from a thread of the process", func(r *placing.Request) bool { return r.Tool == own })
	if err := x.e.letGo(t); err != nil {
		x.tool.show(t)
		return nil, err
	}
	x.e.leaveThread(x.tool, t)
	delete(x.conv.threads, t.proc)
	return nil, nil
}

// letGo tells the node that nobody observes a thread any more.
func (e *Engine) letGo(t *thread) error {
	control, ok := declared(t.proc.node().Can.ThreadControl)
	if !ok || t.proc.tools > 1 {
		return nil
	}
	if err := control.LetGo(t.proc.at().id, t.tid); err != nil {
		return err
	}
	t.proc.released = append(t.proc.released, t)
	return nil
}

// leaveThread gives back what the tool did to a thread, and reports that requests
// do not look out there any more.
func (e *Engine) leaveThread(tool *Tool, t *thread) {
	for _, o := range tool.own(omis.ClassCSR) {
		c := o.(*csr)
		s := c.run.Subs[&t.proc.programs]
		if s == nil || c.event.service.Object != omis.ClassThread || s.Only != nil && !s.Only[t.token] {
			continue
		}
		result := omis.ObjectResult{Objects: []omis.Token{t.token}, Status: omis.OK}
		tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{result}))
	}
}

// hides tells whether the tool detached from a thread.
func (t *Tool) hides(thread omis.Token) bool {
	hidden := t.hidden.Load()
	return hidden != nil && (*hidden)[thread]
}

// hidesAny tells whether the tool detached from a thread of a process.
func (t *Tool) hidesAny(p *process) bool {
	hidden := t.hidden.Load()
	if hidden == nil {
		return false
	}
	for token := range *hidden {
		if th, ok := t.e.reg.lookup(token).(*thread); !ok || th.proc == p {
			return true
		}
	}
	return false
}

// hide and show replace the table, which is read without a lock.

func (t *Tool) hide(list ...*thread) {
	t.changeHidden(func(hidden map[omis.Token]bool) {
		for _, th := range list {
			hidden[th.token] = true
		}
	})
}

func (t *Tool) show(th *thread) {
	t.changeHidden(func(hidden map[omis.Token]bool) { delete(hidden, th.token) })
}

func (t *Tool) changeHidden(change func(map[omis.Token]bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changeHiddenLocked(change)
}

func (t *Tool) changeHiddenLocked(change func(map[omis.Token]bool)) {
	hidden := make(map[omis.Token]bool)
	if old := t.hidden.Load(); old != nil {
		hidden = maps.Clone(*old)
	}
	change(hidden)
	if len(hidden) == 0 {
		t.hidden.Store(nil)
		return
	}
	t.hidden.Store(&hidden)
}

// unhide forgets the threads of a process that the tool leaves. The caller holds
// mu.
func (t *Tool) unhide(p *process) {
	if t.hidden.Load() == nil {
		return
	}
	t.changeHiddenLocked(func(hidden map[omis.Token]bool) {
		maps.DeleteFunc(hidden, func(token omis.Token, _ bool) bool {
			th, ok := t.e.reg.lookup(token).(*thread)
			return !ok || th.proc == p
		})
	})
}

// takeOverReleased hides from a tool that comes to a process what the node does not
// observe there any more. The caller holds Engine.admin.
func (p *process) takeOverReleased(t *Tool) {
	if p.tools <= 1 {
		p.released = nil // it has just been taken up anew
	}
	if len(p.released) > 0 {
		t.hide(slices.Clone(p.released)...)
	}
}
