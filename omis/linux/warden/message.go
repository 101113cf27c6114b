//go:build linux && amd64

package warden

import "fmt"

// verb is what a message says.
type verb string

const (
	hold  verb = "hold"  // a target; its memory file comes with the message
	plant verb = "plant" // a breakpoint stands, or is about to
	clear verb = "clear" // it was taken away
	drop  verb = "drop"  // a target has no breakpoints any more

	still  verb = "still"  // a process is stopped by SIGSTOP; its pidfd comes with the message
	moving verb = "moving" // it was set going again
)

// message is one datagram.
type message struct {
	verb     verb
	pid      int
	addr     uint64
	original byte
}

const maxMessage = 128

func (m message) encode() []byte {
	return fmt.Appendf(nil, "%s %d %#x %#x", m.verb, m.pid, m.addr, m.original)
}

func decode(b []byte) (m message, err error) {
	_, err = fmt.Sscanf(string(b), "%s %d %v %v", &m.verb, &m.pid, &m.addr, &m.original)
	return m, err
}

// breakpoint is the byte that stands where an original was displaced (INT3).
const breakpoint = 0xcc
