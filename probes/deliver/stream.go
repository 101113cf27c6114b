package deliver

import (
	"time"

	"mirador/mir"
)

// Event is a document of a stream.
type Event struct {
	ID       uint64       // ascends by one from document to document
	Lost     int          // documents of the stream that its reader missed before this one; Unknown: some
	Document mir.Document // a measurement
}

// Unknown is the value of Event.Lost after a restart of the gateway, or a long absence.
const Unknown = -1

// backlog is the usual number of documents that wait for a slow reader.
const backlog = 64

// linger is how long the documents for a reader whose connection broke are kept.
const linger = time.Minute

// stream is a reader's end of an outlet. The outlet's lock guards missed.
type stream struct {
	events chan Event
	missed int // since the last event that had room
}

func (s *stream) send(e Event) {
	e.Lost += s.missed
	select {
	case s.events <- e:
		s.missed = 0
	default:
		s.missed++
	}
}

// recall sends the documents after the one that a reader had last.
func (s *stream) recall(recent []Event, after uint64) {
	if len(recent) == 0 || after >= recent[len(recent)-1].ID {
		return
	}
	lost := 0
	if first := recent[0].ID; after+1 < first {
		lost = int(min(first-after-1, 1<<31))
	}
	for _, e := range recent {
		if e.ID > after {
			e.Lost = lost
			s.send(e)
			lost = 0
		}
	}
}
