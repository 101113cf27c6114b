package engine

import (
	"mirador/omis"
	"mirador/omis/node"
)

// held is the thread of a hit.
type held struct {
	node *machine
	proc omis.ProcID
	tid  int
	by   string // node.Hit.Held
}

// cpuTime returns the CPU time of the thread: see service.Occurrence.
func (h held) cpuTime() (int64, error) {
	timer, able := declared(h.node.Can.CPUTimer)
	switch {
	case !able:
		return 0, omis.Errorf(omis.UnsupportedService, "the monitor of this node cannot tell the CPU time of threads")
	case h.by == "":
		return 0, omis.Errorf(omis.UnsupportedService, "no thread is held at this event, whose CPU time could be told: it goes on")
	}
	return timer.CPUTime(h.proc, h.tid)
}

// info returns components of the information about the process: see service.Occurrence.
func (h held) info(fields node.ProcFields) (node.ProcInfo, error) {
	return h.node.ProcInfo(h.proc, fields)
}

// meter counts an event in a thread, while another one may be held: see service.Occurrence.
func (h held) meter(e *Engine, token omis.Token, event string) (node.Meter, error) {
	meters, able := declared(h.node.Can.Meters)
	switch {
	case !able:
		return nil, omis.Errorf(omis.UnsupportedService, "%s cannot count events of the processor and of the kernel", h.node.Name())
	case h.by == "":
		return nil, omis.Errorf(omis.UnsupportedService, "no thread is held at this event in which %s could be counted: it goes on", event)
	}
	t, ok := e.reg.lookup(token).(*thread)
	if !ok {
		return nil, omis.Errorf(omis.UnknownObject, "there is no thread %s", token)
	}
	return meters.OpenMeter(t.proc.at().id, t.tid, node.MeterEvent{Name: event, Alone: true})
}

// threadInfo returns components of the information about a thread: see service.Occurrence.
func (r *registry) threadInfo(token omis.Token, f node.ThreadFields) (proc omis.Token, info node.ThreadInfo, err error) {
	t, ok := r.lookup(token).(*thread)
	if !ok {
		return "", info, omis.Errorf(omis.UnknownObject, "there is no thread %s", token)
	}
	at := t.proc.at()
	info, err = at.node.ThreadInfo(at.id, t.tid, f)
	return t.proc.token, info, err
}

// threadsOf returns the live threads of a process: see service.Occurrence. The node lists them without the help of
// the goroutine that owns the process, which may call this function.
func (e *Engine) threadsOf(proc omis.Token) []omis.Token {
	p, ok := e.reg.lookup(proc).(*process)
	if !ok {
		return nil
	}
	at := p.at()
	tids, err := at.node.Threads(at.id)
	if err != nil {
		return nil // the process has ended
	}
	list := make([]omis.Token, len(tids))
	for i, tid := range tids {
		list[i] = e.reg.thread(p, tid).token
	}
	return list
}
