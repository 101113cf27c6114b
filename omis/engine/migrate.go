package engine

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"mirador/omis"
	"mirador/omis/service"
)

// proc_migrate (OMIS 8.1.2): a process is saved, restored on another node, and
// ended where it was. It keeps its token, its threads keep theirs, and the requests
// that wait for its events go with it.

func procMigrate(x *execution, c *call) ([]omis.Value, error) {
	p := c.object.(*process)
	o, err := x.tool.find(c.args[1].Token())
	if err != nil {
		return nil, err
	}
	dest := nodeOf(o)
	if dest == nil {
		return nil, omis.Errorf(omis.TypeMismatch, "%s is no node", o.Token())
	}
	if dest == p.node() {
		return nil, nil
	}
	m, err := newMove(x.e, p, dest, c.service)
	if err != nil {
		return nil, err
	}
	x.letHear(p, eventWillMigrate, omis.TokenValue(dest.token))
	if err := m.run(); err != nil {
		return nil, err
	}
	delete(x.conv.threads, p)
	x.letHear(p, eventMigrated)
	return nil, m.settle()
}

// move is one migration.
type move struct {
	e       *Engine
	proc    *process
	from    place
	to      place
	source  omis.Checkpointer
	target  omis.Checkpointer
	stopped bool // and stays so
	lost    []error
}

func newMove(e *Engine, p *process, dest *node, s *service.Service) (*move, error) {
	m := &move{e: e, proc: p, from: *p.at(), to: place{node: dest}, stopped: p.halts.isStopped()}
	var err error
	if m.source, err = capability[omis.Checkpointer](m.from.node, s); err != nil {
		return nil, err
	}
	m.target, err = capability[omis.Checkpointer](dest, s)
	return m, err
}

// run moves the process; it is stopped at both ends. Whatever fails before the
// process ends at its old place is undone.
func (m *move) run() error {
	m.e.admin.Lock()
	defer m.e.admin.Unlock()
	if err := m.from.node.Stop(m.from.id, nil); err != nil {
		return err
	}
	if err := m.copy(); err != nil {
		return m.goOn(err)
	}
	for _, pt := range m.proc.points {
		if err := pt.cancel(); err != nil {
			m.e.log.Warn("cannot take a watch away", "process", m.proc.token, "error", err)
		}
	}
	if err := m.from.node.Signal(m.from.id, int(syscall.SIGKILL)); err != nil {
		m.replant()
		return m.goOn(abandon([]place{m.to}, err))
	}
	m.e.reg.move(m.proc, m.to)
	m.replant()
	if tids, err := m.to.node.Threads(m.to.id); err == nil {
		m.e.reg.refresh(m.proc, tids)
	}
	m.rescope()
	return nil
}

func (m *move) copy() error {
	name := fmt.Sprintf("migrate-%s-%d", m.proc.token, m.e.now())
	if err := m.source.Checkpoint([]omis.ProcID{m.from.id}, name); err != nil {
		return err
	}
	ids, err := m.target.Restore(name)
	switch {
	case err != nil:
		return err
	case len(ids) != 1:
		for _, id := range ids {
			err = errors.Join(err, m.to.node.Signal(id, int(syscall.SIGKILL)))
		}
		return errors.Join(omis.Errorf(omis.InternalError, "%s restored %d processes instead of one", m.to.node.Name(), len(ids)), err)
	}
	m.to.id = ids[0]
	return m.to.node.Stop(m.to.id, nil)
}

// goOn lets the process go on where it was.
func (m *move) goOn(cause error) error {
	if m.stopped {
		return cause
	}
	if err := m.from.node.Continue(m.from.id, nil); err != nil {
		return fatal(cause, "%s is stopped: %v", m.proc.token, err)
	}
	return cause
}

// replant plants where the process is now what was planted where it was.
func (m *move) replant() {
	for _, pt := range m.proc.points {
		if err := pt.plant(); err != nil {
			m.lost = append(m.lost, err)
			pt.cancel = func() error { return nil }
		}
	}
}

// rescope gives the tools the process's new node, and ends what was defined for the
// objects of the old one.
func (m *move) rescope() {
	for _, t := range m.e.allTools() {
		if !t.sees(m.proc) {
			continue
		}
		t.attachNode(m.to.node)
		for _, o := range t.own(omis.ClassCSR) {
			c := o.(*csr)
			if c.subs[m.proc] == nil || slices.ContainsFunc(c.targets(), func(t target) bool { return t.proc == m.proc }) {
				continue
			}
			m.e.unsubscribe(c, m.proc)
			gone := omis.ObjectResult{Objects: []omis.Token{m.proc.token}, Status: omis.OK}
			t.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{gone}))
		}
		m.e.follow(t, m.proc)
	}
}

// settle lets the process go on where it is now, after all lists were executed.
func (m *move) settle() error {
	err := errors.Join(m.lost...)
	if !m.stopped {
		err = errors.Join(err, m.to.node.Continue(m.to.id, nil))
	}
	if err != nil {
		return fatal(err, "%s is on %s now", m.proc.token, m.to.node.Name())
	}
	return nil
}
