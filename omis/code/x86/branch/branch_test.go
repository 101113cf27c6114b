package branch

import (
	"encoding/hex"
	"slices"
	"testing"
)

func TestEach(t *testing.T) {
	tests := []struct {
		name, code string
		want       Targets
	}{
		{"a call", "e80300000090909090c3", Targets{8}},
		{"a jump back", "9090e9f9ffffff", Targets{0}},
		{"a conditional jump", "0f840100000090c3", Targets{7}},
		{"in the middle of an instruction", "b8e8000000009090", Targets{6}},
		{"out of the code", "e8000100009090", nil},
		{"cut off", "90909090e80000", nil},
		{"two to one place", "e805000000" + "e800000000" + "c3", Targets{10, 10}},
	}
	for _, tt := range tests {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		var got Targets
		Each(code, func(_, to int) { got = append(got, uint64(to)) })
		if !slices.Equal(got, tt.want) {
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
