package probes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"mirador/mir"
)

// Limits of the keys of requests. A new key displaces the oldest one.
const (
	keysOfCaller = 1000
	keysInAll    = 20 * keysOfCaller
	keyTerm      = 24 * time.Hour // how long a key is known
)

// keyed is a request with a key: it creates one probe, even if it is sent again.
type keyed struct {
	Caller string    `json:"caller"`
	Key    string    `json:"key"`
	Digest string    `json:"digest"` // of the request and its application
	Probe  string    `json:"probe"`  // that it has created; "" while it is being executed
	At     time.Time `json:"at"`
}

// name returns the key of the journal's record. It tells callers and keys apart, whatever
// characters they have.
func (o *keyed) name() string { return keyPrefix + digest(o.Caller, o.Key) }

// digest returns a short text that differs for different lists of texts.
func digest(texts ...string) string {
	all := sha256.New()
	for _, text := range texts {
		one := sha256.Sum256([]byte(text))
		all.Write(one[:])
	}
	return hex.EncodeToString(all.Sum(nil)[:16])
}

type keyedKey struct{}

// WithKey returns a context for a request with a key, as the attribute key of a request.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyedKey{}, key)
}

// newKeyed returns the record of a request, nil if the request has no key.
func newKeyed(ctx context.Context, a *App, r *mir.InstrRequest) (*keyed, error) {
	header, _ := ctx.Value(keyedKey{}).(string)
	key := cmp.Or(r.Key, header)
	if key == "" {
		return nil, nil
	}
	plain := *r
	plain.Key = ""
	text, err := mir.Marshal(&plain)
	if err != nil {
		return nil, err
	}
	return &keyed{Caller: callerOf(ctx).name, Key: key, Digest: digest(a.name, string(text)), At: time.Now()}, nil
}

// keys are the requests with keys. Its methods may be called from any goroutine.
type keys struct {
	registry *Registry
	mu       sync.Mutex
	known    map[string]*keyed // by name; the records do not change
	byCaller map[string]int
}

// execute creates a probe, unless the request was executed before: then it returns the document
// of that probe.
func (o *keys) execute(r *mir.InstrRequest, request *keyed, create func() (*mir.Probe, error)) (mir.Document, error) {
	first := o.reserve(request)
	switch {
	case first == nil:
	case first.Digest != request.Digest:
		return nil, failf(CannotBeDone, "the key %s belongs to another request: use a new key for each request", mir.Quote(request.Key))
	case first.Probe == "":
		return nil, failf(Conflict, "the request with the key %s is being executed: send it again in a moment", mir.Quote(request.Key))
	default:
		p, err := o.registry.Probe(first.Probe)
		if err != nil {
			return &mir.Probe{ID: first.Probe}, nil // it has been removed
		}
		d := p.document(r.Extended())
		p.renew()
		return d, nil
	}
	doc, err := create()
	if err != nil {
		o.forget(request)
		return nil, err
	}
	done := *request
	done.Probe = doc.ID
	return doc, o.enter(&done)
}

// reserve returns the record of an earlier request with the same key. Without one it enters
// this request.
func (o *keys) reserve(request *keyed) (first *keyed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first := o.known[request.name()]; first != nil && time.Since(first.At) < keyTerm {
		return first
	}
	o.keep(request)
	return nil
}

// enter records an executed request, also for the next gateway.
func (o *keys) enter(request *keyed) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(request)
	return o.registry.write(request.name(), request)
}

// keep adds a record, and drops the oldest one where there are too many. The caller holds mu.
func (o *keys) keep(request *keyed) {
	if o.known[request.name()] == nil {
		if o.byCaller[request.Caller] >= keysOfCaller {
			o.dropOldest(func(r *keyed) bool { return r.Caller == request.Caller })
		}
		if len(o.known) >= keysInAll {
			o.dropOldest(func(*keyed) bool { return true })
		}
		o.byCaller[request.Caller]++
	}
	o.known[request.name()] = request
}

func (o *keys) dropOldest(among func(*keyed) bool) {
	var oldest *keyed
	for _, r := range o.known {
		if among(r) && (oldest == nil || r.At.Before(oldest.At)) {
			oldest = r
		}
	}
	o.drop(oldest)
}

// drop removes a record. If it cannot be erased, the next gateway knows the key for longer.
func (o *keys) drop(request *keyed) {
	delete(o.known, request.name())
	if o.byCaller[request.Caller]--; o.byCaller[request.Caller] == 0 {
		delete(o.byCaller, request.Caller)
	}
	if request.Probe == "" {
		return
	}
	if err := o.registry.erase(request.name()); err != nil {
		o.registry.config.Log.Warn("cannot erase the key of a request", "error", err)
	}
}

// forget removes the record of a request that has failed, so that it can be sent again.
func (o *keys) forget(request *keyed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(request)
}

// restore reads the records of a former gateway that are not too old.
func (o *keys) restore() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range o.registry.config.Journal.Keys(keyPrefix) {
		var r keyed
		if !o.registry.recollect(name, &r) {
			continue
		}
		o.keep(&r)
		if time.Since(r.At) >= keyTerm {
			o.drop(&r)
		}
	}
}
