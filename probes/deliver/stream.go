package deliver

import "mirador/mir"

// backlog is the number of documents that wait for a slow reader of a stream.
const backlog = 16

// Stream is a Destination that its reader receives documents from. It drops documents
// while the backlog is full.
type Stream chan *mir.Measurement

// NewStream returns an empty stream.
func NewStream() Stream { return make(Stream, backlog) }

func (s Stream) Send(m *mir.Measurement) {
	select {
	case s <- m:
	default:
	}
}

func (s Stream) Close() { close(s) }
