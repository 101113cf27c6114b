//go:build linux && amd64

package resident

import "testing"

func TestImageParses(t *testing.T) {
	h := Home(0x10000)
	b := append(h.Image(), make([]byte, homeSlots)...)
	e, gone := Entry{0x401000, 0x20000, 0x55, 1, true}, Entry{0x402000, 0x20040, 0xf3, 4, false}
	copy(b[h.Entry(0)-uint64(h):], append(e.Encode(), gone.Encode()...))
	b[offsetCount] = 2
	s, err := h.Parse(b)
	if err != nil || len(s.Entries) != 2 || s.Entries[0] != e || s.Entries[1] != gone || len(s.Arenas) != 1 || s.Arenas[0] != uint64(h) {
		t.Fatal(s, err)
	}
	t.Logf("handler of %d bytes: % x", len(handlerCode()), handlerCode())
	t.Logf("restorer % x", restorerCode())
	for _, c := range b[0x7a0 : 0x7a0+32] {
		if c != 0 {
			t.Fatal("the default action is not zero")
		}
	}
}
