//go:build linux && amd64

package resident

import (
	"bytes"
	"unsafe"
)

// These tell where the linker put the code in handler_amd64.s. It is copied, never
// called.
func handlerAddress() unsafe.Pointer
func restorerAddress() unsafe.Pointer
func sweepAddress() unsafe.Pointer

// endMark stands behind each piece of code in handler_amd64.s.
const endMark = "end here"

func handlerCode() []byte  { return codeAt(handlerAddress(), offsetRestorer) }
func restorerCode() []byte { return codeAt(restorerAddress(), offsetStub-offsetRestorer) }
func sweepCode() []byte    { return codeAt(sweepAddress(), offsetMagic-offsetSweep-len(StubCode)) }

// codeAt copies the code at p up to its end mark; limit is the room it has.
func codeAt(p unsafe.Pointer, limit int) []byte {
	code := unsafe.Slice((*byte)(p), limit)
	n := bytes.Index(code, []byte(endMark))
	if n < 0 {
		panic("resident: the code for the target has outgrown its room")
	}
	return bytes.Clone(code[:n])
}
