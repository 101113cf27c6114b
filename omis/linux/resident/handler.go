//go:build linux && amd64

package resident

import (
	"bytes"
	"unsafe"
)

// These functions return the addresses of the code in handler_amd64.s. The code is
// copied, never called.
func handlerAddress() unsafe.Pointer
func restorerAddress() unsafe.Pointer
func sweepAddress() unsafe.Pointer

// endMark follows each piece of code in handler_amd64.s.
const endMark = "end here"

func handlerCode() []byte  { return codeAt(handlerAddress(), offsetRestorer) }
func restorerCode() []byte { return codeAt(restorerAddress(), offsetStub-offsetRestorer) }
func sweepCode() []byte    { return codeAt(sweepAddress(), offsetMagic-offsetSweep-len(StubCode)) }

// codeAt copies the code at p up to its end mark; limit is the space reserved for it.
func codeAt(p unsafe.Pointer, limit int) []byte {
	code := unsafe.Slice((*byte)(p), limit)
	n := bytes.Index(code, []byte(endMark))
	if n < 0 {
		panic("resident: the code for the target is larger than its reserved space")
	}
	return bytes.Clone(code[:n])
}
