//go:build linux && amd64

package branch

import (
	"encoding/hex"
	"os"
	"slices"
	"testing"

	"mirador/omis/host/proc"
)

func TestFind(t *testing.T) {
	tests := []struct {
		name, code string
		want       Targets
	}{
		{"a call", "e80300000090909090c3", Targets{0x1008}},
		{"a jump back", "9090e9f9ffffff", Targets{0x1000}},
		{"a conditional jump", "0f840100000090c3", Targets{0x1007}},
		{"in the middle of an instruction", "b8e8000000009090", Targets{0x1006}},
		{"out of the code", "e8000100009090", nil},
		{"cut off", "90909090e80000", nil},
		{"two to one place", "e805000000" + "e800000000" + "c3", Targets{0x100a}},
	}
	for _, tt := range tests {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := Find(code, 0x1000); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %x, want %x", tt.name, got, tt.want)
		}
	}
}

func TestBetween(t *testing.T) {
	all := Targets{10, 20}
	for _, tt := range []struct {
		begin, end uint64
		want       bool
	}{{10, 20, false}, {9, 11, true}, {10, 21, true}, {20, 30, false}, {0, 10, false}, {0, 100, true}} {
		if got := all.Between(tt.begin, tt.end); got != tt.want {
			t.Errorf("between %d and %d: %v", tt.begin, tt.end, got)
		}
	}
}

func TestShortBetween(t *testing.T) {
	code, _ := hex.DecodeString("5548" + "89e5" + "90" + "ebfa") // jmp to the second byte
	for _, tt := range []struct {
		begin, end uint64
		want       bool
	}{{0x1000, 0x1005, true}, {0x1001, 0x1005, false}, {0xff0, 0x1001, false}} {
		if got := ShortBetween(code, 0x1000, tt.begin, tt.end); got != tt.want {
			t.Errorf("between %#x and %#x: %v", tt.begin, tt.end, got)
		}
	}
}

// TestOwnCode finds branches in the code of this program.
func TestOwnCode(t *testing.T) {
	mapped, err := proc.Maps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	main, _ := os.Readlink("/proc/self/exe")
	c := NewCatalog()
	for _, m := range mapped {
		if m.Path != main || !m.Exec {
			continue
		}
		first, err := c.Of(os.Getpid(), m, m.Start, make([]byte, 16))
		if err != nil || len(first.Branches) < 1000 || !first.Go {
			t.Fatalf("%+v, %v", first, err)
		}
		again, _ := c.Of(os.Getpid(), m, m.Start, make([]byte, 16))
		if first != again {
			t.Error("the file was read twice")
		}
		return
	}
	t.Fatal("no code mapping was found")
}
