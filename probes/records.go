package probes

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/probes/deliver"
)

// Keys of the journal.
const (
	issuedKey   = "issued" // the number of the newest probe
	appPrefix   = "app/"
	probePrefix = "probe/"
	// samplesPrefix is for the values of probes that measure at fixed times.
	samplesPrefix = "samples/"
	keyPrefix     = "key/"
)

// appRecord is the journal's record of an application.
type appRecord struct {
	Processes []Process `json:"processes"`
	Defaults  string    `json:"defaults,omitempty"` // an instrreq with nothing else
	Follow    bool      `json:"follow,omitempty"`   // add forked processes
	Weaving   string    `json:"weaving,omitempty"`  // the id in programs that are built from its woven sources
	Owner     int       `json:"owner,omitempty"`    // of an application that was made without processes
	Sources   []string  `json:"sources,omitempty"`  // files by which branches are found
}

// probeRecord is the journal's record of a probe.
type probeRecord struct {
	App     string       `json:"app"`
	Number  int          `json:"number"`
	Request string       `json:"request"` // an instrreq
	User    deliver.User `json:"user"`
	Owner   string       `json:"owner,omitempty"`
	State   State        `json:"state"`
	// Keyed is the request, if it has a key. It is here as well as in a record of its own, so
	// that a key is known as soon as its probe is.
	Keyed   *keyed `json:"keyed,omitempty"`
	Armed   bool   `json:"armed,omitempty"`
	Woven   bool   `json:"woven,omitempty"`
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

// keep makes the objects that measure for a probe outlive the gateway. lost is the
// latest time at which values of one of them were lost with a killed gateway.
func (p *Probe) keep(h translate.Handles) (lost time.Time, err error) {
	if p.app.registry.config.Journal == nil {
		return lost, nil
	}
	// A trace ends with its gateway.
	objects := map[string]omis.Token{"count": h.Counter, "ends": h.Ends, "time": h.Timer, "cpu": h.CPUTimer}
	for i, object := range h.Events {
		objects[fmt.Sprint("event", i+1)] = object
	}
	for i, object := range h.Gains {
		objects[fmt.Sprint("gain", i+1)] = object
	}
	var errs []error
	for what, object := range objects {
		if translate.IsMeter(object) { // it ends with its gateway, too
			if p.app.registry.restoring.Load() {
				lost = time.Now()
			}
			continue
		}
		if object == "" {
			continue
		}
		at, err := p.app.tool.connected().Keep(object, p.key(what), p.app.processes.ended()...)
		if err != nil {
			errs = append(errs, failf(Unavailable, "what was measured before the gateway was started cannot be read: %v", err))
		}
		if at.After(lost) {
			lost = at
		}
	}
	return lost, errors.Join(errs...)
}

// key names an object that measures for a probe, as it was installed last. It names the
// journal too, because probes of another gateway may have left something in the same
// process.
func (p *Probe) key(what string) string {
	return p.app.registry.config.Journal.ID() + "." + p.id + "." + strconv.Itoa(p.made) + "." + what
}
