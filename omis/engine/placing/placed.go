package placing

import (
	"maps"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/program"
)

// All functions of this file want the lock held by their caller.

// inPlace is a request's program in a process.
type inPlace struct {
	program.Placed
	proc    *Process
	placer  program.Placer
	level   int     // index of the placement among those of the node
	feeds   []*feed // of its steps
	sources []*feed // that it reads
	count   count   // of its executions
	times   bool    // it opens or closes intervals
}

func (in *inPlace) release() {
	for _, f := range slices.Concat(in.feeds, in.sources) {
		f.release()
	}
}

func placementOf(v program.Verdict) omis.Placement {
	return omis.Placement{Name: v.Name, Where: v.Where, Why: v.Why, Kind: v.Kind, OneIn: v.OneIn, Cost: v.Cost, Local: true}
}

// giveUp releases what a removed program used, as soon as no thread can run it any more.
func (x *Placing) giveUp(in *inPlace) {
	if in.Lingers() {
		x.lingering = append(x.lingering, in)
		x.clearLater(restsFor)
		return
	}
	in.release()
}

// unplace removes programs. What they measured stays in their cells.
func (x *Placing) unplace(list ...*Subscription) {
	back := make([]*inPlace, len(list))
	for i, s := range list {
		back[i] = s.placed
	}
	x.takeAway(back)
	for _, s := range list {
		s.Request.addSpent(s)
		s.Proc.crowd(s, -1)
		s.Proc.tie(s.placed, -1)
		x.giveUp(s.placed)
		s.placed = nil
		delete(s.Proc.programs, s.Request)
		if s.Request.Subs[s.Proc] == nil {
			x.freed(s.Proc, s.Request)
		}
	}
}

// takeAway removes programs, concurrently for different processes and placements: a placement may have to
// wait until no thread runs a program.
func (x *Placing) takeAway(list []*inPlace) {
	type where struct {
		proc   *Process
		placer program.Placer
	}
	standing := make(map[where][]program.Placed)
	for _, in := range list {
		if in.Placed != nil {
			at := where{in.proc, in.placer}
			standing[at] = append(standing[at], in.Placed)
		}
	}
	var all sync.WaitGroup
	for at, placed := range standing {
		all.Go(func() {
			if err := at.placer.Remove(placed); err != nil {
				x.log.Warn("cannot take programs away", "process", at.proc.Token, "placement", at.placer.Name(), "error", err)
			}
		})
	}
	all.Wait()
}

// Unsubscribe ends the execution of requests in a process, all at once. When it returns, the monitor runs no local
// list of theirs there.
func (x *Placing) Unsubscribe(p *Process, list ...*Request) {
	var programs []*Subscription
	for _, c := range list {
		if s := c.resting[p]; s != nil {
			delete(c.resting, p)
			programs = append(programs, s)
		}
		s := c.Subs[p]
		delete(c.Subs, p)
		switch {
		case s == nil:
		case s.placed != nil:
			programs = append(programs, s)
		default:
			c.addSpent(s)
			s.held.End()
			x.freed(p, c)
		}
	}
	x.unplace(programs...)
}

// Disable ends the execution of requests in all processes. Programs that cost nothing while they are not active stay
// where they are for a time, so that the request is quickly enabled again. All others are removed when it returns.
func (x *Placing) Disable(list []*Request) {
	var costly []*Subscription
	for _, c := range list {
		for p, s := range c.Subs {
			switch {
			case s.placed == nil:
				x.Unsubscribe(p, c)
			case s.placed.restsFree():
				x.rest(s)
			default:
				s.placed.SetActive(false)
				delete(c.Subs, p)
				costly = append(costly, s)
			}
		}
	}
	x.unplace(costly...)
}

// Delete forgets requests that were disabled.
func (x *Placing) Delete(list []*Request) {
	var resting []*Subscription
	for _, c := range list {
		for p := range c.observed {
			delete(p.tries, c)
		}
		resting = slices.AppendSeq(resting, maps.Values(c.resting))
		c.resting = nil
	}
	x.unplace(resting...)
}

// restsFree reports whether the program costs next to nothing while it is not active.
func (in *inPlace) restsFree() bool {
	r, ok := in.placer.(program.Rester)
	return ok && r.RestsFree()
}

// restsFor is how long a program that costs nothing stays placed after its request is disabled. Requests
// are often enabled again soon.
const restsFor = time.Second

// rest deactivates a program without removing it.
func (x *Placing) rest(s *Subscription) {
	c := s.Request
	s.placed.SetActive(false)
	s.restsSince = time.Now()
	x.clearLater(restsFor)
	delete(c.Subs, s.Proc)
	if c.resting == nil {
		c.resting = make(map[*Process]*Subscription)
	}
	c.resting[s.Proc] = s
}

// clearLater starts a timer for clearAway, unless one runs already.
func (x *Placing) clearLater(after time.Duration) {
	if !x.clearing {
		x.clearing = true
		time.AfterFunc(after, x.clearAway)
	}
}

// clearAway removes programs that have rested long enough, and releases what lingering programs used that
// no thread runs any more. It takes the lock itself.
func (x *Placing) clearAway() {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.clearing = false
	var tired []*Subscription
	for _, t := range x.host.Tools() {
		for _, c := range t.Requests() {
			for _, s := range c.resting {
				if left := restsFor - time.Since(s.restsSince); left > 0 {
					x.clearLater(left)
					continue
				}
				tired = append(tired, s)
			}
		}
	}
	for _, s := range tired {
		delete(s.Request.resting, s.Proc)
	}
	x.unplace(tired...)
	x.drain()
}

// drain releases what removed programs used, if they do not linger any more.
func (x *Placing) drain() {
	list := x.lingering
	x.lingering = nil
	placed := make(map[program.Drainer][]program.Placed)
	for _, in := range list {
		if d, ok := in.placer.(program.Drainer); ok {
			placed[d] = append(placed[d], in.Placed)
		}
	}
	for d, some := range placed {
		d.Drain(some)
	}
	for _, in := range list {
		x.giveUp(in)
	}
}

// forget removes a program that rests.
func (x *Placing) forget(c *Request, p *Process) {
	if s := c.resting[p]; s != nil {
		delete(c.resting, p)
		x.unplace(s)
	}
}
