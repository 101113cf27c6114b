//go:build linux && amd64

package rendezvous

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"unsafe"
)

func TestSurvey(t *testing.T) {
	const start = 0x401000
	tests := []struct {
		name, code string
		at         uint64
		displaced  string // or the text of the refusal
	}{
		{"one long instruction", "4881ec00010000" + "c3", 0, "4881ec00010000"},
		{"a landing pad", "f30f1efa" + "b801000000" + "c3", 0, "f30f1efab801000000"},
		{"a jump to the code after the landing pad", "f30f1efa" + "b801000000" + "ebf9", 0, "jumps to 0x401004"},
		{"three short ones", "554889e5" + "4883ec10" + "c9c3", 0, "554889e54883ec10"},
		{"in the middle", "90" + "b801000000" + "c3", 1, "b801000000"},
		{"a call at the end", "4889c7" + "e810000000" + "c3", 0, "4889c7e810000000"},
		{"a call within", "ffd0" + "b801000000" + "c3", 0, "execution leaves"},
		{"a return within", "31c0" + "c3" + "9090909090", 0, "execution leaves"},
		{"too short", "31c0c3", 0, "execution leaves"},
		{"the function's end", "31c090", 0, "ends within"},
		{"a jump into it", "31c0" + "ffc0" + "83f80a" + "7cf9" + "c3", 0, "jumps to 0x401002"},
		{"a jump to it", "31c0" + "ffc0" + "83f80a" + "7cf7" + "c3", 0, "31c0ffc083f80a"},
		{"a jump into one instruction is none", "b801000000" + "ebf9", 0, "b801000000"},
		{"an indirect jump", "31c0" + "ffc0" + "83f80a" + "ffe0", 0, "indirect jump at 0x401007"},
		{"a system call", "31c0" + "0f05" + "b801000000c3", 0, "waiting in the system call"},
		{"a landing pad inside", "31c0" + "f30f1efa" + "c3", 0, "an indirect jump may come"},
		{"an unknown one after it", "31c0" + "31db31c9" + "0f04" + "c3", 0, "unknown instruction at 0x401006"},
		{"no boundary", "90b8010000009090c3", 2, "no instruction of the function begins there"},
		{"outside", "c3", 4, "outside the function"},
		{"two words", strings.Repeat("90", 0xffc) + "b801000000c3", 0xffc, "two machine words"},
		{"the end of a word", strings.Repeat("90", 0xffb) + "b801000000c3", 0xffb, "b801000000"},
		{"no boundary before one long instruction", "90b8010000009090c3", 0, "90b801000000"},
		{"not at a boundary", "48b8b801000000000000" + "c3", 2, "no instruction of the function begins there"},
	}
	for _, tt := range tests {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Survey(Function{start, code}, start+tt.at)
		var refusal *Refusal
		switch {
		case err == nil && hex.EncodeToString(p.Code) != tt.displaced:
			t.Errorf("%s: displaces %x", tt.name, p.Code)
		case err != nil && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.displaced)):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestStub(t *testing.T) {
	code, _ := hex.DecodeString("554889e54883ec10c9c3")
	p, err := Survey(Function{0x401000, code}, 0x401000)
	if err != nil {
		t.Fatal(err)
	}
	stub, moved, err := encodeStub(&p, 0x502000, 0x501000)
	if err != nil {
		t.Fatal(err)
	}
	const want = "0010400000000000" + "554889e548" + "08" + "0000" +
		"488d642480" + "e8e6efffff" + // lea -128(%rsp), %rsp; call 501000
		"55" + "4889e5" + "4883ec10" + "e9e1efefff" // the displaced instructions; jmp 401008
	if got := hex.EncodeToString(stub); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(moved) != 3 || moved[1] != 1 || moved[2] != 4 {
		t.Error(moved)
	}
	s := &Site{places: map[uint64]*place{p.Addr: {Plan: p, stub: 0x502000, moved: moved, stands: true}}}
	for pc, want := range map[uint64]uint64{0x401001: 0x502000 + stubCopy + 1, 0x401004: 0x502000 + stubCopy + 4, 0x401000: 0, 0x401008: 0} {
		if to, ok := s.Moved(pc); to != want || ok != (want != 0) {
			t.Errorf("a thread at %#x continues at %#x", pc, to)
		}
	}
}

// TestLayout checks what the kernel and the page size require of the board.
func TestLayout(t *testing.T) {
	var b board
	if unsafe.Sizeof(b) != boardSize || boardSize%0x1000 != 0 || unsafe.Offsetof(b.slots) != 0x1000 {
		t.Errorf("the board has %d bytes", unsafe.Sizeof(b))
	}
	if unsafe.Sizeof(b.slots[0]) != 256 || unsafe.Sizeof(robustHead{}) != 24 {
		t.Error("a slot or the head of the list has a wrong size")
	}
	if code := holdCode(); len(code) > arenaMagic-arenaCode {
		t.Errorf("hold has %d bytes", len(code))
	}
}
