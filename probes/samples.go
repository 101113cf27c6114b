package probes

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"mirador/mir/translate"
)

// samples has the accumulated values of a probe that measures at fixed times, or when asked.
type samples struct {
	mu    sync.Mutex
	all   []translate.Value
	again time.Time // the next time to write them to the journal
}

// add adds the values of one measurement.
func (s *samples) add(vs []translate.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = translate.Accumulate(s.all, vs)
}

func (s *samples) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

func (s *samples) values() []translate.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]translate.Value(nil), s.all...)
}

// samplesRecord is the journal's record of the samples of a probe.
type samplesRecord struct {
	At     time.Time         `json:"at"`
	Values []translate.Value `json:"values"`
}

// Samples are written to the journal once a second, or less often if they are so large that they
// would fill it. A SIGKILL loses the later samples.
const (
	samplesPause = time.Second
	samplesRate  = 100_000 // bytes a second
)

// keepSamples writes the samples to the journal if it is time for it, or in any case with now.
func (p *Probe) keepSamples(w *installed, now bool) error {
	r := p.app.registry
	if r.config.Journal == nil || w == nil || w.samples == nil {
		return nil
	}
	s := w.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if !now && at.Before(s.again) {
		return nil
	}
	text, err := json.Marshal(samplesRecord{at, s.all})
	if err != nil {
		return err
	}
	s.again = at.Add(max(samplesPause, time.Duration(len(text))*time.Second/samplesRate))
	return r.write(samplesPrefix+p.id, json.RawMessage(text))
}

// recallSamples restores the samples that an earlier gateway wrote for the probe, which is
// installed but not active yet. It returns when they were written, the zero Time if there are
// none.
func (p *Probe) recallSamples() (at time.Time) {
	_, w := p.now()
	if w.samples == nil {
		return at
	}
	var left samplesRecord
	if !p.app.registry.recollect(samplesPrefix+p.id, &left) {
		return at
	}
	for _, v := range left.Values {
		if v.Metric < 0 || v.Metric >= len(w.plan.Metrics) {
			return at // they belong to another definition of the probe
		}
	}
	w.samples.mu.Lock()
	defer w.samples.mu.Unlock()
	w.samples.all = left.Values
	return left.At
}

// missed records in the probe's notice that there are no samples between two gateways.
func (p *Probe) missed(since time.Time) {
	if _, w := p.now(); w == nil || w.samples == nil || !translate.Scheduled(w.times) {
		return
	}
	notice := "the gateway was killed: what was measured before is lost"
	if now := time.Now(); !since.IsZero() {
		notice = fmt.Sprintf("the gateway was killed: there are no measurements from %s to %s",
			since.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	p.mu.Lock()
	p.notice = notice
	p.mu.Unlock()
	p.app.registry.config.Log.Warn("a probe misses measurements", "probe", p.id, "app", p.app.name, "why", notice)
}

// sweepSamples removes the samples of removed probes from the journal.
func (r *Registry) sweepSamples() error {
	var errs []error
	for _, key := range r.config.Journal.Keys(samplesPrefix) {
		if _, err := r.Probe(key[len(samplesPrefix):]); err != nil {
			errs = append(errs, r.erase(key))
		}
	}
	return errors.Join(errs...)
}
