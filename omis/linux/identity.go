//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// identities are the users of the processes that were identified. Its methods may be called
// from any goroutine.
type identities struct {
	mu    sync.Mutex
	byPID map[int]identity // so that there are never more of them than pids
}

// identity is the user of a process at the time when the process was identified.
type identity struct {
	start uint64
	uid   int
}

func (i *identities) put(pid int, of identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byPID[pid] = of
}

func (i *identities) of(pid int) (of identity, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of, known = i.byPID[pid]
	return of, known
}

// Identify: see node.Node. It records the user of the process, and removes what a killed
// monitor left in the process.
func (n *Node) Identify(pid int) (omis.ProcID, error) {
	if pid > 0 && pid == n.warden.PID() {
		return omis.ProcID{}, omis.Errorf(omis.ParameterError, "process %d is the warden, which keeps targets alive if the monitor dies; the monitor must not stop it", pid)
	}
	p, err := proc.Identify(pid)
	if err != nil {
		return p, err
	}
	uid, err := proc.Owner(pid)
	if err != nil {
		return p, err
	}
	n.identities.put(pid, identity{p.Start, uid})
	n.tidyUp(p)
	return p, nil
}

// sameUser returns an error if the process has become another user's since it was identified.
// Permission was given for the former user's process; a monitor with privileges would extend
// it to a set-user-ID program. A process of root can only lose privileges.
func (o *owner) sameUser() error {
	noted, known := o.node.identities.of(o.proc.PID)
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

// giveUp releases a process that has become another user's by executing a program. Its
// watches and stops end as with the end of a process.
func (o *owner) giveUp() {
	o.changedUser = false
	o.releaseAll()
}

// releaseAll ends all watches and stops of the process, and releases it.
func (o *owner) releaseAll() {
	for w := range o.events.watches {
		// If the write fails, the program has ended or the warden restores the byte.
		_ = o.events.unwatch(w)
	}
	o.halts.halted, o.halts.pauses = false, 0
	for _, t := range o.tracer.threads {
		t.halted, t.pauses, t.holds = false, 0, 0
	}
	o.leave()
}
