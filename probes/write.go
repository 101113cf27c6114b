package probes

import (
	"errors"

	"mirador/mir"
)

// A change is written to the journal before its request is answered. After a SIGKILL a client that
// got an answer finds the change; a client that got none may find either state. The callers of
// all functions in this file hold op.

// touch marks the probe to be written with the next change. The caller holds mu, unless the
// probe is new.
func (p *Probe) touch() {
	if !p.changed {
		p.changed = true
		p.app.touched = append(p.app.touched, p)
	}
}

// writeDown writes the changed probes of the application.
func (a *App) writeDown() error {
	var errs []error
	for _, p := range a.touched {
		errs = append(errs, p.writeDown())
	}
	a.touched = nil
	return errors.Join(errs...)
}

// writeSelf writes the application's own record.
func (a *App) writeSelf() error {
	if a.registry.config.Journal == nil {
		return nil
	}
	r := appRecord{Follow: a.forks.followed, Processes: a.processes.list(), Weaving: a.weaving.id, Owner: a.weaving.owner, Sources: a.branches.named()}
	if a.defaults != nil {
		text, err := mir.Marshal(&mir.InstrRequest{Measuring: a.defaults})
		if err != nil {
			return err
		}
		r.Defaults = string(text)
	}
	return a.registry.write(appPrefix+a.name, r)
}

// writeDown writes the probe if it has changed.
func (p *Probe) writeDown() error {
	p.mu.Lock()
	changed := p.changed
	p.changed = false
	r := probeRecord{App: p.app.name, Number: p.number, User: p.user, Owner: p.owner, Keyed: p.keyed, State: p.state, Armed: p.armed, Made: p.made, Woven: p.woven}
	request := p.request
	if p.failure != nil {
		r.Failure = p.failure.Error()
	}
	p.mu.Unlock()
	if !changed || p.app.registry.config.Journal == nil {
		return nil
	}
	text, err := mir.Marshal(&request)
	if err != nil {
		return err
	}
	r.Request = string(text)
	return p.app.registry.write(probePrefix+p.id, r)
}
