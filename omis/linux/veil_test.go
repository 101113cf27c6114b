//go:build linux && amd64

package linux

import (
	"bytes"
	"testing"

	"mirador/omis/linux/rendezvous"
)

// TestVeil checks that hide restores the original bytes in every part of the memory, also if a breakpoint or a
// jump is only partly inside.
func TestVeil(t *testing.T) {
	var v veil
	v.put(0x1001, 0x55)
	jump := []byte{0xe9, 1, 0xcc, 3, 0xe9}
	v.patch(rendezvous.Patch{Addr: 0x1008, Jump: jump, Displaced: []byte("abcde")})
	original := []byte("\x90\x55\x90\x90\x90\x90\x90\x90abcde\xe9\x90\x90")
	patched := bytes.Clone(original)
	patched[1] = int3
	copy(patched[8:], jump)
	for from := range original {
		for to := from; to <= len(original); to++ {
			got := bytes.Clone(patched[from:to])
			v.hide(0x1000+uint64(from), got)
			if !bytes.Equal(got, original[from:to]) {
				t.Fatalf("%d to %d: % x", from, to, got)
			}
		}
	}
	other := []byte{0xe9, 1, 2, 3, 0xe9}
	got := bytes.Clone(other)
	if v.hide(0x1008, got); !bytes.Equal(got, other) {
		t.Errorf("hide changed bytes that are not the monitor's jump: % x", got)
	}
	v.clear()
	got = bytes.Clone(patched)
	if v.hide(0x1000, got); !bytes.Equal(got, patched) {
		t.Error("hide changed memory after clear")
	}
}
