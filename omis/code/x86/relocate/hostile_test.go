package relocate

import (
	"math/rand/v2"
	"testing"
)

// TestPieceOfAnything relocates bytes that are not code, which a process may have written
// over what an earlier monitor left.
func TestPieceOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50000 {
		code := make([]byte, r.IntN(40))
		for i := range code {
			code[i] = byte(r.Uint32())
			if r.IntN(4) == 0 {
				code[i] = []byte{0xe9, 0xeb, 0x0f, 0x48, 0x8b, 0x05, 0x74, 0xe8}[r.IntN(8)]
			}
		}
		if moved, err := Piece(code, 0x1000, 0x2000); err == nil && len(moved) > 16*len(code)+16 {
			t.Fatalf("% x became % x", code, moved)
		}
	}
}

// TestDecodeOfAnything decodes bytes that are not code, or end within an instruction.
func TestDecodeOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200000 {
		code := make([]byte, r.IntN(17))
		for i := range code {
			code[i] = byte(r.Uint32())
			if r.IntN(3) == 0 {
				code[i] = []byte{0xc4, 0xc5, 0x62, 0x8f, 0x66, 0x67, 0x0f, 0x04}[r.IntN(8)]
			}
		}
		if inst, err := Decode(code); err == nil && (inst.Len == 0 || inst.Len > len(code)) {
			t.Fatalf("% x has %d bytes", code, inst.Len)
		}
	}
}
