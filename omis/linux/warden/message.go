//go:build linux && amd64

package warden

import (
	"encoding/hex"
	"fmt"
)

// verb is what a message says.
type verb string

const (
	hold  verb = "hold"  // a target; its memory file comes with the message
	plant verb = "plant" // a patch stands, or is about to
	clear verb = "clear" // it was taken away
	drop  verb = "drop"  // a target has no patches any more

	still  verb = "still"  // a process is stopped by SIGSTOP; its pidfd comes with the message
	moving verb = "moving" // it was set going again
)

// message is one datagram.
type message struct {
	verb verb
	pid  int
	addr uint64
	Patch
}

// Patch is what stands in place of a program's own bytes, within a machine word.
type Patch struct {
	Standing, Displaced []byte
	// Mark is where a byte of the target tells that the patch stands, or is about to: it
	// is not 0 then. Whoever takes the patch out sets it to 0 afterwards. 0: there is no
	// such byte.
	Mark uint64
}

const maxMessage = 128

func (m message) encode() []byte {
	return fmt.Appendf(nil, "%s %d %#x %x. %x. %#x", m.verb, m.pid, m.addr, m.Standing, m.Displaced, m.Mark)
}

func decode(b []byte) (m message, err error) {
	var standing, displaced string
	if _, err = fmt.Sscanf(string(b), "%s %d %v %s %s %v", &m.verb, &m.pid, &m.addr, &standing, &displaced, &m.Mark); err != nil {
		return m, err
	}
	if m.Standing, err = decodeBytes(standing); err != nil {
		return m, err
	}
	m.Displaced, err = decodeBytes(displaced)
	return m, err
}

// decodeBytes reads hexadecimal digits up to a dot, which is there so that no
// bytes are a word too.
func decodeBytes(s string) ([]byte, error) { return hex.DecodeString(s[:len(s)-1]) }
