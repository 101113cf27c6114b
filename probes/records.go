package probes

import (
	"fmt"

	"mirador/omis"
)

// Keys of the journal.
const (
	issuedKey   = "issued" // the number of the probe made last
	appPrefix   = "app/"
	probePrefix = "probe/"
	// Of probes that measure by the clock: what they have measured.
	samplesPrefix = "samples/"
)

// appRecord is what the journal knows of an application.
type appRecord struct {
	Processes []processRecord `json:"processes"`
	Defaults  string          `json:"defaults,omitempty"` // an instrreq with nothing else
	Follow    bool            `json:"follow,omitempty"`   // what its processes fork is taken in
}

type processRecord struct {
	Token   omis.Token `json:"token"`
	PID     int        `json:"pid"`
	Start   uint64     `json:"start"`
	UID     int        `json:"uid"`
	Argv    []string   `json:"argv"`
	Started bool       `json:"started,omitempty"`
}

// probeRecord is what the journal knows of a probe.
type probeRecord struct {
	App     string `json:"app"`
	Number  int    `json:"number"`
	Request string `json:"request"` // an instrreq
	State   State  `json:"state"`
	Armed   bool   `json:"armed,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Made counts the times that the probe was installed: what measured for it before
	// it was defined anew is another's.
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

// unwritten says what it means that something is not in the journal. What a former gateway
// has left comes back all the same: the journal has it, as it was before.
func (r *Registry) unwritten(err error) error {
	if err == nil {
		return nil
	}
	if r.restoring.Load() {
		r.config.Log.Warn("what was brought back is not written down", "error", err)
		return nil
	}
	return failf(Unavailable, "it was done, but will not be known any more if the gateway is killed: %v", err)
}

// kept makes the objects of an installed plan ones that outlive the gateway.
func (a *App) kept(h omis.Token, key string) error {
	if a.registry.config.Journal == nil || h == "" {
		return nil
	}
	if err := a.tool.Keep(h, key, a.ended()...); err != nil {
		return failf(Unavailable, "what was measured before the gateway was started cannot be read: %v", err)
	}
	return nil
}

// ended lists the processes that are gone.
func (a *App) ended() []omis.ProcID {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var list []omis.ProcID
	for _, p := range a.processes {
		if p.Gone {
			list = append(list, omis.ProcID{PID: p.PID, Start: p.Start})
		}
	}
	return list
}

// key names what measures for a probe, as it was installed for the nth time. Probes of
// another gateway may have left something in the same process.
func (p *Probe) key(nth int, what string) string {
	j := p.app.registry.config.Journal
	if j == nil {
		return ""
	}
	return fmt.Sprintf("%s.%s.%d.%s", j.ID(), p.id, nth, what)
}
