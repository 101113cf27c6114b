package detour

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// TestDecodeAgreesWithObjdump compares the lengths of instructions.
func TestDecodeAgreesWithObjdump(t *testing.T) {
	for _, path := range []string{"/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"} {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		section := f.Section(".text")
		code, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		cmd := exec.Command("objdump", "-d", "-w", "-j", ".text", "--no-show-raw-insn", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var at uint64
		var last string
		seen, unknown := 0, 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var next uint64
			addr, text, ok := strings.Cut(lines.Text(), ":\t")
			if _, err := fmt.Sscanf(addr, "%x", &next); !ok || err != nil {
				continue
			}
			if at != 0 && !strings.Contains(last, "(bad)") && !IsLandingPad(code[at-section.Addr:]) {
				seen++
				inst, err := Decode(code[at-section.Addr:])
				switch {
				case err != nil:
					unknown++
				case inst.Op == x86asm.FWAIT: // objdump regards it as a part of the next instruction
				case at+uint64(inst.Len) != next:
					t.Errorf("%s: %#x: %s has %d bytes, not %d", path, at, last, next-at, inst.Len)
				}
			}
			at, last = next, text
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		t.Logf("%s: %d instructions, %d unknown", path, seen, unknown)
		if unknown > seen/200 {
			t.Errorf("%s: %d of %d instructions are unknown", path, unknown, seen)
		}
	}
}
