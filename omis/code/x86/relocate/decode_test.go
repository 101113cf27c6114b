package relocate

import (
	"encoding/hex"
	"testing"
)

// TestVector decodes instructions with VEX and EVEX prefixes.
func TestVector(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		relative   int // offset of the distance, 0 if there is none
	}{
		{"vzeroupper", "c5f877", 0},
		{"vmovdqa xmm0, [rip+0x10]", "c5f96f0510000000", 4},
		{"vpcmpeqb ymm1, ymm0, [rdi]", "c5fd740f", 0},
		{"vpshufd xmm0, [rip+0x10], 3", "c5f9700510000000" + "03", 4},
		{"vpalignr ymm0, ymm1, [rsp+0x20], 5", "c4e3750f44242005", 0},
		{"bzhi eax, [rip+0x10], ecx", "c4e270f50510000000", 5},
		{"vmovdqu64 zmm0, [rip+0x10]", "62f1fe486f0510000000", 6},
		{"vpaddd zmm0, zmm1, [rax+rcx*8+0x12345678]", "62f17548fe84c878563412", 0},
		{"vmovups xmm0, fs:[0x28]", "64c5f810042528000000", 0},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := Decode(append(code, 0x90, 0x90, 0x90, 0x90))
		if err != nil || inst.Len != len(code) || inst.PCRelOff != tt.relative {
			t.Errorf("%s: %d bytes, a distance at %d, %v", tt.name, inst.Len, inst.PCRelOff, err)
		}
	}
}

// TestVectorMoved checks that a moved instruction still reaches its operand.
func TestVectorMoved(t *testing.T) {
	code, _ := hex.DecodeString("c5f96f0510000000") // vmovdqa 0x10(%rip), %xmm0
	c, err := Instruction(code, 0x401000, 0x400000)
	if want := "c5f96f0510100000"; err != nil || hex.EncodeToString(c.Code[:8]) != want {
		t.Errorf("% x, %v", c.Code, err)
	}
}
