package engine

import (
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// thread_detach (OMIS 8.1.3) hides the thread from the tool. If no other tool is attached, the node stops
// observing the thread. To see the thread again, the tool must detach from the process and attach again.

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

// letGo tells the node to stop observing a thread.
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

// leaveThread reports for the tool's requests that they do not watch a thread any more.
func (e *Engine) leaveThread(tool *Tool, t *thread) {
	for _, c := range tool.requests() {
		s := c.run.Subs[&t.proc.programs]
		if s == nil || c.event.service.Object != omis.ClassThread || s.Only != nil && !s.Only[t.token] {
			continue
		}
		tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{outcome(nil, t.token)}))
	}
}

// hides reports whether the tool has detached from a thread.
func (t *Tool) hides(thread omis.Token) bool {
	hidden := t.hidden.Load()
	return hidden != nil && (*hidden)[thread]
}

// hidesAny reports whether the tool has detached from a thread of a process.
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

// hide and show replace the table, because it is read without a lock.

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

// unhide forgets the threads of a process that the tool leaves. The caller holds mu.
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

// takeOverReleased hides from a tool that attaches to a process the threads that the node does not observe
// any more. The caller holds Engine.admin.
func (p *process) takeOverReleased(t *Tool) {
	if p.tools <= 1 {
		p.released = nil // the node has just begun to observe the process again
	}
	if len(p.released) > 0 {
		t.hide(slices.Clone(p.released)...)
	}
}
