package engine

import (
	"fmt"
	"sync"
	"time"

	"mirador/omis"
)

// replyDelay is the longest time that replies of a request with omis.BufferReplies wait.
const replyDelay = 20 * time.Millisecond

// sink receives the replies of one request.
type sink struct {
	callback func(omis.Reply)
	flags    omis.Flags
	lost     int // replies that found the queue full; guarded by delivery.mu
}

// wants reports whether a reply is to be delivered (OMIS 7.1.1).
func (s *sink) wants(r omis.Reply) bool {
	if s == nil || s.callback == nil {
		return false
	}
	switch r[0][0].Status {
	case omis.CSREnabled, omis.CSRDisabled:
		return s.flags&omis.DontReturnEnDis == 0 || r.Err() != nil
	case omis.OK, omis.CSRTriggered:
		return s.flags&omis.DontReturnOK == 0 || informs(r)
	}
	return true
}

// informs reports whether a reply contains more than success.
func informs(r omis.Reply) bool {
	for _, service := range r[1:] {
		for _, o := range service {
			if o.Status.IsError() || len(o.Values) > 0 {
				return true
			}
		}
	}
	return r.Err() != nil
}

type parcel struct {
	to    *sink
	reply omis.Reply
}

// delivery brings replies to the tool, one at a time and in order. It never blocks: if too many replies
// wait, it drops further ones and reports their number to the tool.
type delivery struct {
	mu      sync.Mutex
	waiting []parcel
	short   []*sink // sinks with lost replies
	running bool
	closed  bool
	timer   *time.Timer
}

func (d *delivery) push(to *sink, r omis.Reply) {
	if !to.wants(r) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return
	case len(d.waiting) >= maxPending:
		if to.lost++; to.lost == 1 {
			d.short = append(d.short, to)
		}
		return
	}
	d.waiting = append(d.waiting, parcel{to, r})
	if to.flags&omis.BufferReplies != 0 && len(d.waiting) < maxPending/2 {
		if d.timer == nil {
			d.timer = time.AfterFunc(replyDelay, d.flush)
		}
		return
	}
	d.start()
}

// flush delivers what was buffered.
func (d *delivery) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start()
}

// start starts a goroutine for the delivery, if none runs. The caller holds mu.
func (d *delivery) start() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if !d.running && !d.closed && len(d.waiting) > 0 {
		d.running = true
		go d.work()
	}
}

func (d *delivery) work() {
	for {
		batch := d.take()
		if batch == nil {
			return
		}
		for _, p := range batch {
			if d.isClosed() {
				return
			}
			p.to.callback(p.reply)
		}
	}
}

func (d *delivery) take() []parcel {
	d.mu.Lock()
	defer d.mu.Unlock()
	batch := d.waiting
	d.waiting = nil
	for _, s := range d.short {
		batch = append(batch, parcel{s, lostReply(s.lost)})
		s.lost = 0
	}
	d.short = nil
	if len(batch) == 0 || d.closed {
		d.running = false
		return nil
	}
	return batch
}

func (d *delivery) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// close drops all replies that were not delivered. It does not wait for a running callback, which may be
// its caller.
func (d *delivery) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.waiting, d.short = nil, nil
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func lostReply(n int) omis.Reply {
	msg := fmt.Sprintf("%d replies were lost here: the tool does not take them fast enough", n)
	return omis.Reply{{{Status: omis.NoMemory, Msg: msg}}}
}
