//go:build linux

package calibrate

import (
	"bytes"
	"debug/elf"
	"slices"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// TestSites checks that the places to probe are instructions of the dummy's functions,
// which are identical.
func TestSites(t *testing.T) {
	all, first := code()
	if first < 50 || len(all) != first+functions*stride {
		t.Fatalf("the functions begin at %d of %d bytes", first, len(all))
	}
	function := all[first : first+stride]
	for i := range functions {
		if !bytes.Equal(all[first+i*stride:][:stride], function) {
			t.Errorf("function %d differs from the first one", i)
		}
	}
	ops := make(map[uint64]x86asm.Op)
	for pos := uint64(0); pos <= ends[0]; {
		inst, err := x86asm.Decode(function[pos:], 64)
		if err != nil {
			t.Fatalf("at %d: %v", pos, err)
		}
		ops[pos] = inst.Op
		pos += uint64(inst.Len)
	}
	for i, want := range []x86asm.Op{x86asm.PUSH, x86asm.NOP, x86asm.MOV, x86asm.NOP, x86asm.RET, x86asm.PUSH, x86asm.NOP, x86asm.MOV, x86asm.NOP} {
		if site := slices.Concat(begins, ends)[i]; ops[site] != want {
			t.Errorf("at %d is %v, want %v", site, ops[site], want)
		}
	}
}

func TestProgramIsWellFormed(t *testing.T) {
	file, first := programFile()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if symbols, err := f.Symbols(); err != nil || len(symbols) != functions || symbols[1].Value != first+stride || symbols[1].Name != "function" {
		t.Errorf("its symbols are %v (%v)", symbols, err)
	}
	if f.Section(".eh_frame") == nil || first%stride != 0 || f.Entry < codeAt {
		t.Errorf("no unwind tables, functions at %#x, entry %#x", first, f.Entry)
	}
}
