package binary

import (
	"debug/elf"
	"math/rand/v2"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// TestQuickDecoding compares with x86asm: the instructions of programs, and random bytes.
func TestQuickDecoding(t *testing.T) {
	quick, all := 0, 0
	for _, path := range []string{"/bin/bash", builtGo(t, "looping").Path()} {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		code, err := f.Section(".text").Data()
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		for code = code[:min(len(code), 1<<20)]; len(code) > 0; {
			want, ok := decodeInstruction(code)
			if !ok {
				want.Len = 1
			}
			if all++; compareQuick(t, code, want, ok) {
				quick++
			}
			code = code[want.Len:]
		}
	}
	if quick < all*95/100 {
		t.Errorf("%d of %d instructions are decoded quickly", quick, all)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300_000 {
		code := make([]byte, 1+r.IntN(16))
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		want, ok := decodeInstruction(code)
		compareQuick(t, code, want, ok)
	}
}

// compareQuick reports whether an instruction is decoded quickly. What x86asm does not know may be.
func compareQuick(t *testing.T, code []byte, want x86asm.Inst, known bool) bool {
	t.Helper()
	got, ok := decodeQuick(code)
	if !ok || !known || want.Op == 0 {
		return ok
	}
	if got.Len != want.Len {
		t.Fatalf("% x: %d bytes, want %d: %v", code[:min(16, len(code))], got.Len, want.Len, want)
	}
	to, direct := want.Args[0].(x86asm.Rel)
	if ends(want.Op) && got.Op != want.Op || got.Op != 0 && got.Op != want.Op || got.direct != direct || got.distance != int32(to) {
		t.Fatalf("% x: %+v, want %v", code[:got.Len], got, want)
	}
	if change, fixed := stackChange(want); (change != 0 || !fixed) && !got.stack {
		t.Fatalf("% x: %v changes the stack pointer", code[:got.Len], want)
	}
	return true
}

// ends reports whether an instruction may end a block.
func ends(op x86asm.Op) bool {
	switch op {
	case x86asm.CALL, x86asm.LCALL, x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.UD1, x86asm.UD2, x86asm.HLT, x86asm.INT:
		return true
	}
	return isJump(op)
}
