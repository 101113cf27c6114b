//go:build linux && amd64

package warden

import (
	"encoding/hex"
	"fmt"
)

// verb is the kind of a message.
type verb string

const (
	hold  verb = "hold"  // guard a target; its memory file comes with the message
	plant verb = "plant" // a patch is in place, or about to be
	clear verb = "clear" // the patch was removed
	drop  verb = "drop"  // a target has no patches any more

	still  verb = "still"  // a process is stopped by SIGSTOP; its pidfd comes with the message
	moving verb = "moving" // the process continues
)

// message is one datagram.
type message struct {
	verb verb
	pid  int
	addr uint64
	Patch
}

// Patch replaces a program's own bytes, within a machine word.
type Patch struct {
	Standing, Displaced []byte
	// Mark is the address of a byte in the target, or 0 if the patch has no such byte. The
	// byte is not 0 while the patch is in place, or is about to be. The monitor or the warden
	// sets it to 0 after it has removed the patch.
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

// decodeBytes decodes hexadecimal digits before a dot. The dot makes an empty list of
// bytes a word for Sscanf.
func decodeBytes(s string) ([]byte, error) { return hex.DecodeString(s[:len(s)-1]) }
