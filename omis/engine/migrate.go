package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/node"
	"mirador/omis/service"
)

// proc_migrate (OMIS 8.1.2) saves a process, restores it on another node, and ends it where it was. The
// process and its threads keep their tokens, and requests wait for its events at the new place.

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
	return nil, m.resume()
}

// move is one migration.
type move struct {
	e       *Engine
	proc    *process
	name    string // of the checkpoint
	from    place
	to      place
	source  node.Checkpointer
	target  node.Checkpointer
	stopped bool // the process was stopped, and stays so
	lost    []error
}

func newMove(e *Engine, p *process, dest *machine, s *service.Service) (*move, error) {
	m := &move{e: e, proc: p, from: *p.at(), to: place{node: dest}, stopped: p.halts.isStopped()}
	m.name = fmt.Sprintf("migrate-%s-%d", p.token, e.now())
	var err error
	if m.source, err = capability(m.from.node, m.from.node.Can.Checkpointer, s); err != nil {
		return nil, err
	}
	if m.target, err = capability(dest, dest.Can.Checkpointer, s); err != nil {
		return nil, err
	}
	family, err := m.source.Descendants(m.from.id)
	if err == nil && len(family) > 0 {
		err = omis.Errorf(omis.UnsupportedService, "cannot migrate %s alone: it has children (processes %s), which would lose their parent", p.token, numbers(family))
	}
	return m, err
}

func numbers(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

// run moves the process, which is stopped at both places. If an error occurs before the process ends at its
// old place, run undoes everything.
func (m *move) run() error {
	m.e.admin.Lock()
	defer m.e.admin.Unlock()
	m.e.placing.EvictAll(&m.proc.programs, "the process was moved", func(*placing.Request) bool { return true })
	if err := m.from.node.Stop(m.from.id, nil); err != nil {
		return err
	}
	if err := m.source.Checkpoint([]omis.ProcID{m.from.id}, m.name); err != nil {
		return m.goOn(err)
	}
	err := m.restore(m.target, m.to.node)
	var taken *node.Occupied
	switch {
	case errors.As(err, &taken) && taken.PID == m.from.id.PID:
		// Both nodes are one machine, which cannot have two processes with the same pid.
		err = m.replace()
	case err == nil:
		err = m.end()
		if err != nil {
			err = m.goOn(abandon([]place{m.to}, err))
		}
	default:
		err = m.goOn(err)
	}
	if err != nil {
		return err
	}
	m.discard()
	m.arrive(m.to)
	m.rescope()
	return nil
}

// restore restores the process on a node.
func (m *move) restore(with node.Checkpointer, n *machine) error {
	ids, err := with.Restore(m.name)
	if err != nil {
		return err
	}
	m.to = place{node: n, id: ids[0]}
	return nil
}

// end ends the process where it was. It first removes all watches there, because requests must not see that
// end.
func (m *move) end() error {
	for _, pt := range m.proc.points {
		if err := pt.cancel(); err != nil {
			m.e.log.Warn("cannot take a watch away", "process", m.proc.token, "error", err)
		}
	}
	err := m.from.node.Signal(m.from.id, int(syscall.SIGKILL))
	if err != nil {
		m.replant()
	}
	return err
}

// replace ends the process before it is restored. If that fails, it is restored where it was.
func (m *move) replace() error {
	dest := m.to.node
	if err := m.end(); err != nil {
		return m.goOn(err)
	}
	cause := m.restore(m.target, dest)
	if cause == nil {
		return nil
	}
	if err := m.restore(m.source, m.from.node); err != nil {
		m.lose()
		return fatal(cause, "%s could not be restored where it was, either: %v; the checkpoint %s is kept", m.proc.token, err, m.name)
	}
	m.arrive(m.to)
	m.from = m.to
	return m.goOn(cause)
}

// lose reports to the engine that a process has ended. It runs later, because the caller may hold
// Engine.admin.
func (m *move) lose() {
	for _, pt := range m.proc.points {
		pt.cancel = func() error { return nil }
	}
	go m.e.processEnded(m.proc)
}

// arrive records where the process is now.
func (m *move) arrive(at place) {
	m.e.reg.move(m.proc, at)
	m.replant()
	if tids, err := at.node.Threads(at.id); err == nil {
		m.e.reg.refresh(m.proc, tids)
	}
}

// discard removes the checkpoint.
func (m *move) discard() {
	if err := m.source.Discard(m.name); err != nil && !isUnknown(err) {
		m.e.log.Warn("cannot remove a checkpoint", "name", m.name, "error", err)
	}
}

// goOn continues the process where it was.
func (m *move) goOn(cause error) error {
	m.discard()
	if m.stopped {
		return cause
	}
	if err := m.from.node.Continue(m.from.id, nil); err != nil {
		return fatal(cause, "%s is stopped: %v", m.proc.token, err)
	}
	return cause
}

// replant plants at the new place what was planted at the old one.
func (m *move) replant() {
	for _, pt := range m.proc.points {
		if err := pt.plant(); err != nil {
			m.lost = append(m.lost, err)
			pt.cancel = func() error { return nil }
		}
	}
}

// rescope adds the process's new node to the scopes of tools, and ends requests that were defined for
// objects of the old one.
func (m *move) rescope() {
	for _, t := range m.e.allTools() {
		if !t.sees(m.proc) {
			continue
		}
		t.attachNode(m.to.node)
		for _, c := range t.requests() {
			if c.run.Subs[&m.proc.programs] == nil || slices.ContainsFunc(c.targets(), func(t target) bool { return t.proc == m.proc }) {
				continue
			}
			m.e.placing.Unsubscribe(&m.proc.programs, &c.run)
			c.report(omis.CSRDisabled, m.proc, nil)
		}
		m.e.follow(t, m.proc)
	}
}

// resume continues the process at its new place, after all lists were executed.
func (m *move) resume() error {
	err := errors.Join(m.lost...)
	if !m.stopped {
		err = errors.Join(err, m.to.node.Continue(m.to.id, nil))
	}
	if err != nil {
		return fatal(err, "%s is on %s now", m.proc.token, m.to.node.Name())
	}
	return nil
}
