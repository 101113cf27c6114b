package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"

	"mirador/mir/translate"
	"mirador/probes"
)

// chrome writes events in the JSON array format of Chrome's trace viewer, which Perfetto reads,
// too: "B" begins an execution of a thread and "E" ends the innermost one; "i" is an instant, "M"
// names a process or thread. It keeps what it must know of each thread, but no events.
type chrome struct {
	out     io.Writer
	err     error // the first one of out
	buf     bytes.Buffer
	written bool
	threads map[chromeThread]*chromeState
	named   map[int]bool // processes

	tracks map[chromeGoroutine]int
	made   int // number of tracks so far
}

type chromeThread struct{ pid, tid int }

type chromeGoroutine struct {
	pid  int
	addr uint64
}

type chromeState struct {
	open []string // executions
	last int64    // time of the last event
}

// chromeEvent is an event of the format. Its times are in microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Scope string         `json:"s,omitempty"` // of an instant: t (thread) or g (all)
	Time  json.Number    `json:"ts,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// mostChromeThreads limits the threads whose state is kept: beyond it, the state of threads that execute
// nothing is dropped. Such a thread is named again before its next event.
const mostChromeThreads = 10_000

func newChrome(out io.Writer) *chrome {
	w := &chrome{out: out, threads: make(map[chromeThread]*chromeState), named: make(map[int]bool), tracks: make(map[chromeGoroutine]int)}
	w.buf.WriteString("[")
	w.flush()
	return w
}

// flush writes the events so far.
func (w *chrome) flush() {
	if w.err == nil {
		_, w.err = w.out.Write(w.buf.Bytes())
	}
	w.buf.Reset()
}

func (w *chrome) write(e *chromeEvent) {
	text, err := json.Marshal(e)
	if err != nil {
		return // strings and numbers can be marshalled
	}
	if w.written {
		w.buf.WriteByte(',')
	}
	w.written = true
	w.buf.WriteByte('\n')
	w.buf.Write(text)
}

// batch writes the events of a batch.
func (w *chrome) batch(b probes.TracedBatch) {
	for i := range b.Events {
		e := &b.Events[i]
		if i == 0 && b.Lost > 0 {
			w.lost(e, b.Lost)
		}
		w.event(e)
	}
	if len(b.Events) == 0 && b.Lost > 0 {
		w.lost(&probes.Traced{}, b.Lost)
	}
	w.flush()
}

// lost writes how many records are lost before an event.
func (w *chrome) lost(e *probes.Traced, n int64) {
	w.write(&chromeEvent{Name: "lost records", Phase: "i", Scope: "g", Time: microseconds(e.Time), PID: e.PID, TID: e.TID, Args: map[string]any{"records": n}})
}

// event writes one event. An end whose beginning the reader has not seen is an instant.
func (w *chrome) event(e *probes.Traced) {
	thread := e.TID
	if e.Goroutine != 0 {
		e = w.onTrack(e)
	}
	s := w.thread(e)
	// Times of one thread ascend. The clock of the events is accurate to some nanoseconds only.
	s.last = max(s.last, e.Time)
	c := &chromeEvent{Name: e.Name, Cat: "mirador", Phase: "E", Time: microseconds(s.last), PID: e.PID, TID: e.TID, Args: make(map[string]any)}
	for _, v := range e.Values {
		c.Args[v.Metric] = json.Number(v.Value)
	}
	if e.Goroutine != 0 {
		c.Args["thread"] = thread
	}
	switch e.What {
	case translate.Entered:
		c.Phase = "B"
		s.open = append(s.open, e.Name)
	case translate.Executed:
		c.Phase, c.Scope = "i", "t"
	case translate.Abandoned, translate.Cut, translate.Unmatched:
		c.Args["end"] = e.What.String()
	}
	if c.Phase == "E" {
		n := len(s.open)
		if n == 0 || e.What == translate.Unmatched {
			c.Phase, c.Scope = "i", "t"
			c.Args["end"] = e.What.String()
		} else {
			s.open = s.open[:n-1]
		}
	}
	w.write(c)
}

// firstTrack is greater than all numbers of threads, also of those that stand for unknown threads.
const firstTrack = 1 << 28

// onTrack returns the event as one of a thread that stands for the goroutine: its executions may begin and
// end on different threads, and the format pairs them by threads.
func (w *chrome) onTrack(e *probes.Traced) *probes.Traced {
	at := chromeGoroutine{e.PID, e.Goroutine}
	track, known := w.tracks[at]
	if !known {
		if len(w.tracks) >= mostChromeThreads {
			maps.DeleteFunc(w.tracks, func(at chromeGoroutine, track int) bool {
				s := w.threads[chromeThread{at.pid, track}]
				return s == nil || len(s.open) == 0
			})
		}
		track = firstTrack + w.made
		w.made++
		w.tracks[at] = track
	}
	of := *e
	of.TID, of.Thread = track, fmt.Sprintf("goroutine at %#x", e.Goroutine)
	return &of
}

// thread returns the state of a thread. It names a new thread, and its process.
func (w *chrome) thread(e *probes.Traced) *chromeState {
	at := chromeThread{e.PID, e.TID}
	s := w.threads[at]
	if s != nil {
		return s
	}
	if len(w.threads) >= mostChromeThreads {
		maps.DeleteFunc(w.threads, func(_ chromeThread, s *chromeState) bool { return len(s.open) == 0 })
	}
	s = &chromeState{}
	w.threads[at] = s
	if !w.named[e.PID] {
		w.named[e.PID] = true
		w.write(&chromeEvent{Name: "process_name", Phase: "M", PID: e.PID, TID: e.TID, Args: map[string]any{"name": e.Process}})
	}
	w.write(&chromeEvent{Name: "thread_name", Phase: "M", PID: e.PID, TID: e.TID, Args: map[string]any{"name": e.Thread}})
	return s
}

// close ends what is open, so that every beginning has an end.
func (w *chrome) close() error {
	for at, s := range w.threads {
		for i := len(s.open) - 1; i >= 0; i-- {
			w.write(&chromeEvent{
				Name: s.open[i], Cat: "mirador", Phase: "E", Time: microseconds(s.last), PID: at.pid, TID: at.tid,
				Args: map[string]any{"end": "the trace ends"},
			})
		}
	}
	w.buf.WriteString("\n]\n")
	w.flush()
	return nil
}

// microseconds formats nanoseconds exactly.
func microseconds(ns int64) json.Number {
	text := strconv.FormatInt(ns, 10)
	for len(text) < 4 {
		text = "0" + text
	}
	return json.Number(text[:len(text)-3] + "." + text[len(text)-3:])
}
