package relocate

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

func TestInstruction(t *testing.T) {
	const from, to = 0x401000, 0x500000
	tests := []struct{ name, code, want string }{
		{"push", "55", "push rbp; jmp 401001"},
		{"endbr64", "f30f1efa", "f30f1efa; jmp 401004"},
		{"ret", "c3", "ret"},
		{"ret imm", "c20800", "ret 0x8"},
		{"sub", "4883ec18", "sub rsp, 0x18; jmp 401004"},
		{"rip relative load", "488b0510000000", "mov rax, qword ptr [0x401017]; jmp 401007"},
		{"rip relative with immediate", "c7051000000001000000", "mov dword ptr [0x40101a], 0x1; jmp 40100a"},
		{"short jump", "eb10", "jmp 401012"},
		{"near jump", "e910000000", "jmp 401015"},
		{"short jz", "7410", "je 401012; jmp 401002"},
		{"near jnz", "0f8510000000", "jne 401016; jmp 401006"},
		{"call", "e810000000", "push 0x401005; mov dword ptr [rsp+0x4], 0x0; jmp 401015"},
		{"call register", "ffd0", "push 0x401002; mov dword ptr [rsp+0x4], 0x0; jmp rax"},
		{"call memory", "ff1510000000", "push 0x401006; mov dword ptr [rsp+0x4], 0x0; jmp qword ptr [0x401016]"},
		{"jump memory", "ff2510000000", "jmp qword ptr [0x401016]"},
		{"jump register", "ffe2", "jmp rdx"},
		{"jrcxz", "e310", "jrcxz 500004; jmp 500009; jmp 401012; jmp 401002"},
		{"loop", "e2f0", "loop 500004; jmp 500009; jmp 400ff2; jmp 401002"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _ := hex.DecodeString(tt.code)
			c, err := Instruction(append(code, 0x90, 0x90, 0x90, 0x90), from, to)
			if err != nil {
				t.Fatal(err)
			}
			if c.Length != len(code) || len(c.Code) > MaxCopy {
				t.Errorf("length %d, copy of %d bytes", c.Length, len(c.Code))
			}
			if got := listing(c.Code, to); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, code := range map[string]string{
		"int3": "cc", "ud2": "0f0b", "call through rsp": "ff542408", "unknown": "62f17c48580a90909090", "hlt": "f4", "cut": "488b",
		"far operand": "488b05000000ff",
	} {
		b, _ := hex.DecodeString(code)
		_, err := Instruction(b, 0x7fff00000000, 0x7fff80000000)
		checkRefused(t, name, err)
	}
}

func checkRefused(t *testing.T, name string, err error) {
	t.Helper()
	var typed *Error
	if !errors.As(err, &typed) {
		t.Errorf("%s: %v", name, err)
	}
}

// listing disassembles with absolute addresses.
func listing(code []byte, at uint64) string {
	var lines []string
	for len(code) > 0 {
		if n := landingPad(code); n > 0 {
			lines = append(lines, hex.EncodeToString(code[:n]))
			code, at = code[n:], at+uint64(n)
			continue
		}
		inst, err := x86asm.Decode(code, 64)
		if err != nil {
			return err.Error()
		}
		lines = append(lines, describe(inst, at+uint64(inst.Len)))
		code, at = code[inst.Len:], at+uint64(inst.Len)
	}
	return strings.Join(lines, "; ")
}

func describe(inst x86asm.Inst, next uint64) string {
	if rel, ok := inst.Args[0].(x86asm.Rel); ok {
		return strings.ToLower(inst.Op.String()) + " " + hexOf(next+uint64(int64(rel)))
	}
	for i, a := range inst.Args {
		if m, ok := a.(x86asm.Mem); ok && m.Base == x86asm.RIP {
			inst.Args[i] = x86asm.Mem{Disp: int64(next) + int64(int32(m.Disp))}
		}
	}
	return x86asm.IntelSyntax(inst, 0, nil)
}

func hexOf(v uint64) string {
	return strings.TrimLeft(hex.EncodeToString([]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), "0")
}

// TestPiece checks that a piece of code still reaches its operands from its new place,
// that addresses within it move along, and that bytes that threads cannot reach are not
// changed.
func TestPiece(t *testing.T) {
	const from, to = 0x401000, 0x500010
	for _, tt := range []struct{ name, code, want string }{
		{"nothing", "", ""},
		{"push, pop", "5058", "5058"},
		{"a byte elsewhere", "803d00001000" + "00" + "90", "803df00f000000" + "90"},
		{"to its end", "7401" + "90", "7401" + "90"},
		{"code after its end is not part of it", "eb00", "eb00"},
		{"data within", "48030d02000000" + "eb08" + "803d000010000080" + "90", "48030d02000000" + "eb08" + "803d000010000080" + "90"},
		{"call by a register", "ffd0" + "803d00001000" + "00", "ffd0" + "803df00f000000"},
		{"a loop", "ffc9" + "75fc" + "488b0500000f00", "ffc9" + "75fc" + "488b05f00fffff"},
	} {
		code, _ := hex.DecodeString(tt.code)
		moved, err := Piece(code, from, to)
		if got := hex.EncodeToString(moved); err != nil || got != tt.want {
			t.Errorf("%s: %s, want %s, %v", tt.name, got, tt.want, err)
		}
	}
	for name, code := range map[string]string{
		"call": "e800000000", "call by memory": "ff1500000000", "ret": "c3", "far branch": "0f8400100000", "indirect jump": "ffe0", "cut": "488b05", "unknown": "06",
		"out of reach": "488b05000000ff",
	} {
		b, _ := hex.DecodeString(code)
		_, err := Piece(b, 0x7fff00000000, 0x7fff80000000)
		checkRefused(t, name, err)
	}
}
