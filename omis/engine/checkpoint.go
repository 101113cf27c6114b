package engine

import (
	"errors"
	"slices"
	"syscall"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// proc_checkpoint and proc_restore (OMIS 8.1.2).

// fleet is a set of processes of one node.
type fleet struct {
	node  *machine
	procs []*process
	ids   []omis.ProcID
}

func fleetOf(p *process) *fleet {
	at := p.at()
	return &fleet{node: at.node, procs: []*process{p}, ids: []omis.ProcID{at.id}}
}

func fleets(objs []object) []*fleet {
	var list []*fleet
	index := make(map[*machine]*fleet)
	for _, o := range objs {
		p := o.(*process)
		at := p.at()
		f := index[at.node]
		if f == nil {
			f = &fleet{node: at.node}
			index[at.node] = f
			list = append(list, f)
		}
		f.procs, f.ids = append(f.procs, p), append(f.ids, at.id)
	}
	return list
}

// procCheckpoint saves all processes as they are at one moment: nodes that can suspend processes suspend
// them all meanwhile. A single process is saved without that, unless it has programs: they are removed for
// a while, in which no thread may run past them.
func procCheckpoint(x *execution, c *call, objs []object) omis.ServiceResult {
	all := fleets(objs)
	for _, f := range all {
		if len(objs) > 1 || f.hasPrograms(x.e) {
			defer f.freeze(x.e)()
		}
	}
	for _, f := range all {
		defer f.clear(x.e)()
	}
	var failed omis.ServiceResult
	for _, f := range all {
		cp, err := capability(f.node, f.node.Can.Checkpointer, c.service)
		if err == nil {
			err = cp.Checkpoint(f.ids, c.args[1].Str)
		}
		if err == nil {
			continue
		}
		for _, p := range f.procs {
			failed = append(failed, failure(err, p.token))
		}
	}
	return failed
}

func (f *fleet) hasPrograms(e *Engine) bool {
	e.admin.Lock()
	defer e.admin.Unlock()
	return slices.ContainsFunc(f.procs, func(p *process) bool { return p.programs.HasPrograms() })
}

// clear makes the monitor, not programs, execute the requests of the processes: a node saves code without its own
// breakpoints, but not without the changes of placements. back puts the programs back.
func (f *fleet) clear(e *Engine) (back func()) {
	e.admin.Lock()
	defer e.admin.Unlock()
	var moved []*placing.Subscription
	for _, p := range f.procs {
		moved = append(moved, e.placing.Clear(&p.programs, "the process was saved")...)
	}
	return func() { e.placing.Promote(moved) }
}

// freeze suspends the processes that can be suspended. thaw resumes them.
func (f *fleet) freeze(e *Engine) (thaw func()) {
	s, ok := declared(f.node.Can.Suspender)
	if !ok {
		return func() {}
	}
	var frozen []omis.ProcID
	for _, id := range f.ids {
		switch err := s.Suspend(id, nil); {
		case err == nil:
			frozen = append(frozen, id)
		case !isUnknown(err):
			e.log.Warn("cannot suspend a process", "pid", id.PID, "error", err)
		}
	}
	return func() {
		for _, id := range frozen {
			if err := s.Resume(id, nil); err != nil && !isUnknown(err) {
				e.log.Warn("cannot resume a process", "pid", id.PID, "error", err)
			}
		}
	}
}

// procRestore restores what every node has of a checkpoint, attaches to it, and then continues it, so that
// requests miss no event. If a node fails, the processes that other nodes restored are ended again.
func procRestore(x *execution, c *call) ([]omis.Value, error) {
	var restored []place
	var err error = omis.Errorf(omis.UnknownObject, "there is no checkpoint %q", c.args[0].Str)
	for _, n := range x.e.nodes {
		cp, ok := declared(n.Can.Checkpointer)
		if !ok {
			continue
		}
		ids, failed := cp.Restore(c.args[0].Str)
		switch {
		case isUnsupported(failed) && len(x.e.nodes) > 1:
			err = failed // other nodes may have it
			continue
		case failed != nil && !isUnknown(failed):
			return nil, abandon(restored, failed)
		}
		for _, id := range ids {
			restored = append(restored, place{n, id})
		}
	}
	if len(restored) == 0 {
		return nil, err
	}
	values, err := x.attachedAll(restored)
	if err != nil {
		return nil, err
	}
	for _, at := range restored {
		if err := at.node.Continue(at.id, nil); err != nil && !isUnknown(err) {
			return nil, abandon(restored, err)
		}
	}
	return values, nil
}

func (x *execution) attachedAll(list []place) ([]omis.Value, error) {
	var procs []omis.Token
	for _, at := range list {
		p, err := x.e.attach(x.tool, at)
		if err != nil {
			return nil, abandon(list, err)
		}
		procs = append(procs, p.token)
	}
	x.conv.forget()
	return []omis.Value{omis.Tokens(procs...), omis.Int(int64(len(procs)))}, nil
}

// abandon ends restored processes after an error.
func abandon(list []place, cause error) error {
	var errs []error
	for _, at := range list {
		errs = append(errs, at.node.Signal(at.id, int(syscall.SIGKILL)))
	}
	if err := errors.Join(errs...); err != nil {
		return fatal(cause, "some processes are restored and could not be ended again: %v", err)
	}
	return cause
}
