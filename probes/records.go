package probes

import (
	"fmt"

	"mirador/omis"
)

// Keys of the journal.
const (
	issuedKey   = "issued" // the number of the newest probe
	appPrefix   = "app/"
	probePrefix = "probe/"
	// samplesPrefix is for the values of probes that measure at fixed times.
	samplesPrefix = "samples/"
)

// appRecord is the journal's record of an application.
type appRecord struct {
	Processes []processRecord `json:"processes"`
	Defaults  string          `json:"defaults,omitempty"` // an instrreq with nothing else
	Follow    bool            `json:"follow,omitempty"`   // add forked processes
}

type processRecord struct {
	Token   omis.Token `json:"token"`
	PID     int        `json:"pid"`
	Start   uint64     `json:"start"`
	UID     int        `json:"uid"`
	Argv    []string   `json:"argv"`
	Started bool       `json:"started,omitempty"`
}

// probeRecord is the journal's record of a probe.
type probeRecord struct {
	App     string `json:"app"`
	Number  int    `json:"number"`
	Request string `json:"request"` // an instrreq
	State   State  `json:"state"`
	Armed   bool   `json:"armed,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Made counts how often the probe was installed. The cells of an earlier definition have
	// other keys.
	Made int `json:"made,omitempty"`
}

// write puts a value into the journal, if there is one.
func (r *Registry) write(key string, value any) error {
	j := r.config.Journal
	if j == nil {
		return nil
	}
	return r.unwritten(j.Put(key, value))
}

func (r *Registry) erase(key string) error {
	j := r.config.Journal
	if j == nil {
		return nil
	}
	return r.unwritten(j.Delete(key))
}

// unwritten explains to a client that the journal could not be written. During Restore it logs
// the error instead, because the journal still has the older record.
func (r *Registry) unwritten(err error) error {
	if err == nil {
		return nil
	}
	if r.restoring.Load() {
		r.config.Log.Warn("restored, but not written to the journal", "error", err)
		return nil
	}
	return failf(Unavailable, "it was done, but will not be known any more if the gateway is killed: %v", err)
}

// kept makes an object of an installed plan persist under a key.
func (a *App) kept(h omis.Token, key string) error {
	if a.registry.config.Journal == nil || h == "" {
		return nil
	}
	if err := a.tool.connected().Keep(h, key, a.processes.ended()...); err != nil {
		return failf(Unavailable, "what was measured before the gateway was started cannot be read: %v", err)
	}
	return nil
}

// key returns the key of an object of the nth installation of the probe. It contains the
// journal's id, because a probe of another gateway may have left an object in the same process.
func (p *Probe) key(nth int, what string) string {
	j := p.app.registry.config.Journal
	if j == nil {
		return ""
	}
	return fmt.Sprintf("%s.%s.%d.%s", j.ID(), p.id, nth, what)
}
