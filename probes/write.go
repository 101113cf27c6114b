package probes

import (
	"errors"

	"mirador/mir"
)

// What is written into the journal is written before the request is answered that
// changed it: who was answered finds it so after a kill, who was not may find either.
// All functions of this file want op held by their caller.

// touch has the probe written with the next change that is. The caller holds mu, unless
// nobody knows the probe yet.
func (p *Probe) touch() {
	if !p.changed {
		p.changed = true
		p.app.touched = append(p.app.touched, p)
	}
}

// writeDown writes those of the application's probes that have changed.
func (a *App) writeDown() error {
	var errs []error
	for _, p := range a.touched {
		errs = append(errs, p.writeDown())
	}
	a.touched = nil
	return errors.Join(errs...)
}

// writeSelf writes what the application consists of.
func (a *App) writeSelf() error {
	if a.registry.config.Journal == nil {
		return nil
	}
	r := appRecord{Follow: a.forks.followed}
	for _, p := range a.Processes() {
		r.Processes = append(r.Processes, processRecord{
			Token: p.Token, PID: p.PID, Start: p.Start, UID: p.UID, Argv: p.Argv, Started: p.Started,
		})
	}
	if a.defaults != nil {
		text, err := mir.Marshal(&mir.InstrRequest{Measuring: a.defaults})
		if err != nil {
			return err
		}
		r.Defaults = string(text)
	}
	return a.registry.write(appPrefix+a.name, r)
}

// writeDown writes the probe, if it has changed.
func (p *Probe) writeDown() error {
	p.mu.Lock()
	changed := p.changed
	p.changed = false
	r := probeRecord{App: p.app.name, Number: p.number, State: p.state, Armed: p.armed, Made: p.made}
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
