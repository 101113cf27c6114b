package probes

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"mirador/mir/translate"
	"mirador/probes/deliver"
)

// clock delivers the values of an application's probes at fixed times. It reads probes that
// are due at about the same time by one request, and queues their documents together: ten
// thousand goroutines with a request each take five times as much time. It has a goroutine
// while there are such probes.
type clock struct {
	app  *App
	busy sync.Mutex // held while values are read and delivered

	mu     sync.Mutex
	due    alarms
	live   int           // alarms that are not stopped
	wake   chan struct{} // has room for one
	begun  bool          // the goroutine runs
	lasted int           // processes that had ended when all alarms were compared with them; -1: some were not
}

// alarm is a probe that delivers, with the time of its next delivery.
type alarm struct {
	probe   *Probe
	work    *installed
	every   time.Duration
	next    time.Time
	stopped bool
}

// alarms is a heap by time.
type alarms []*alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].next.Before(a[j].next) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(*alarm)) }
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = nil
	*a = (*a)[:len(*a)-1]
	return last
}

// slack is how much earlier than its time a probe may deliver, together with others. The
// times themselves do not move.
func (a *alarm) slack() time.Duration { return min(a.every/50, 20*time.Millisecond) }

// schedule begins the deliveries of a probe. The schedule's stop waits until none is under way.
func (c *clock) schedule(p *Probe, w *installed, every time.Duration) *schedule {
	a := &alarm{probe: p, work: w, every: every, next: time.Now().Add(every)}
	c.mu.Lock()
	defer c.mu.Unlock()
	heap.Push(&c.due, a)
	c.live++
	c.lasted = -1
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if !c.begun {
		c.begun = true
		go c.run()
	}
	c.rouse()
	s := &schedule{work: w, stop: func() { c.stop(a) }, done: make(chan struct{})}
	close(s.done)
	return s
}

func (c *clock) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *clock) stop(a *alarm) {
	c.mu.Lock()
	if !a.stopped {
		a.stopped = true
		c.live--
		c.rouse()
	}
	c.mu.Unlock()
	c.busy.Lock() // waits until a delivery that has begun is done
	defer c.busy.Unlock()
}

// run delivers until there are no alarms.
func (c *clock) run() {
	for {
		ended := c.app.processes.nextEnd()
		c.conclude()
		wait, ok := c.wait()
		if !ok {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			c.pass()
		case <-ended:
		case <-c.wake:
		}
		timer.Stop()
	}
}

// wait returns the time until the next delivery. It reports false, and ends the goroutine, if
// there is none.
func (c *clock) wait() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.due) > 0 && c.due[0].stopped {
		heap.Pop(&c.due)
	}
	if c.live == 0 {
		c.due, c.begun = nil, false
		return 0, false
	}
	return time.Until(c.due[0].next), true
}

// pass delivers the values of the probes that are due.
func (c *clock) pass() {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.send(context.Background(), c.ring(time.Now()))
}

// ring returns the probes that are due, and sets their next times.
func (c *clock) ring(now time.Time) (list []*Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rung []*alarm
	for len(c.due) > 0 && !c.due[0].next.After(now.Add(c.due[0].slack())) {
		a := heap.Pop(&c.due).(*alarm)
		if !a.stopped {
			rung = append(rung, a)
			list = append(list, a.probe)
		}
	}
	for _, a := range rung {
		if a.next = a.next.Add(a.every); a.next.Before(now) {
			a.next = a.next.Add(now.Sub(a.next).Truncate(a.every) + a.every)
		}
		heap.Push(&c.due, a)
	}
	return list
}

// conclude delivers the last values of probes whose processes have all terminated.
func (c *clock) conclude() {
	c.busy.Lock()
	defer c.busy.Unlock()
	gone := c.app.processes.gone()
	c.mu.Lock()
	var over []*alarm
	if c.lasted != len(gone) {
		for _, a := range c.due {
			if !a.stopped && a.work.plan.Outlived(gone) {
				a.stopped = true
				c.live--
				over = append(over, a)
			}
		}
		c.lasted = len(gone)
	}
	c.mu.Unlock()
	for _, a := range over {
		a.probe.conclude(context.Background(), a.work, a.every)
	}
}

// send delivers the values of some probes, if there are destinations.
func (c *clock) send(ctx context.Context, list []*Probe) {
	taken := list[:0]
	for _, p := range list {
		if !p.outlet.Empty() {
			taken = append(taken, p)
		}
	}
	readings, errs := readings(ctx, c.app, taken)
	parcels := make([]deliver.Parcel, 0, len(taken))
	for i, p := range taken {
		if errs[i] != nil {
			p.complain(ctx, "cannot deliver", errs[i])
			continue
		}
		parcels = append(parcels, deliver.Parcel{To: &p.outlet, Document: translate.Document(readings[i : i+1])})
	}
	deliver.Send(parcels...)
}
