//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/host/proc"
)

// identity is whose process it was when it was identified. It is kept by pid,
// so that there are never more than pids.
type identity struct {
	start uint64
	uid   int
}

// Identify: see node.Node. It notes whose process it is, and takes out what a
// killed monitor left in it.
func (n *Node) Identify(pid int) (omis.ProcID, error) {
	if pid > 0 && pid == n.warden.PID() {
		return omis.ProcID{}, omis.Errorf(omis.ParameterError, "process %d is the warden, which sees to it that targets survive the monitor; the monitor must not stop it", pid)
	}
	p, err := proc.Identify(pid)
	if err != nil {
		return p, err
	}
	uid, err := proc.Owner(pid)
	if err != nil {
		return p, err
	}
	n.mu.Lock()
	n.identities[pid] = identity{p.Start, uid}
	n.mu.Unlock()
	n.tidyUp(p)
	return p, nil
}

// sameUser refuses a process that has become another user's since it was
// identified. Whoever asked for it was let at the former user's process; a
// monitor with privileges would let him at a set-user-ID program's, too. A
// process of root's can only become less than it was.
func (o *owner) sameUser() error {
	o.node.mu.Lock()
	noted, known := o.node.identities[o.proc.PID]
	o.node.mu.Unlock()
	if !known || noted.start != o.proc.Start || noted.uid == 0 {
		return nil
	}
	now, err := proc.Owner(o.proc.PID)
	if err != nil {
		return err
	}
	if now != noted.uid {
		return omis.Errorf(omis.NoPermission, "process %d has taken another identity since it was attached to: it was uid %d's, now it is uid %d's; attach to it once more", o.proc.PID, noted.uid, now)
	}
	return nil
}

// renounce lets a process go that has become another user's by executing a
// program. What stood on it ends as with a process's end.
func (o *owner) renounce() {
	o.estranged = false
	o.releaseAll()
}

// releaseAll takes everything away that stands on the process, and lets it go.
func (o *owner) releaseAll() {
	for w := range o.events.watches {
		// What cannot be written any more has ended, or the warden restores it.
		_ = o.events.unwatch(w)
	}
	o.halts.halted, o.halts.pauses = false, 0
	for _, t := range o.tracer.threads {
		t.halted, t.pauses, t.holds = false, 0, 0
	}
	o.leave()
}
