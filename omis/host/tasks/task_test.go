//go:build linux

package tasks

import "testing"

func TestStatesHaveTheirLetters(t *testing.T) {
	for _, c := range []struct {
		state, exit uint32
		want        byte
	}{
		{0, 0, 'R'}, {0x800, 0, 'R'}, // new
		{1, 0, 'S'}, {0x2001, 0, 'S'}, // freezable
		{2, 0, 'D'}, {0x102, 0, 'D'}, // killable
		{0x104, 0, 'T'}, {8, 0, 't'}, {0x80, 0x10, 'X'}, {0x80, 0x20, 'Z'}, {0x40, 0, 'P'},
		{0x402, 0, 'I'}, {0x8000, 0, 'D'}, {0x1000, 0, 'D'},
	} {
		if got := letter(c.state, c.exit); got != c.want {
			t.Errorf("state %#x, %#x is %c, want %c", c.state, c.exit, got, c.want)
		}
	}
}

func TestSystemTimeIsScaled(t *testing.T) {
	const s = 1_000_000_000
	for _, c := range []struct {
		what          string
		ran           uint64
		ticked, shown modes
		want          uint64
	}{
		{"no ticks: all is the program's", 3 * s, modes{}, modes{}, 0},
		{"ticks of the program alone", 3 * s, modes{s, 0}, modes{}, 0},
		{"ticks of the kernel alone", 3 * s, modes{0, s}, modes{}, 3 * s},
		{"in proportion", 4 * s, modes{s, 3 * s}, modes{}, 3 * s},
		{"more ticks than time", 2 * s, modes{3 * s, s}, modes{}, s / 2},
		{"years", 1 << 58, modes{1 << 57, 1 << 57}, modes{}, 1 << 57},
		{"never less than before", 4 * s, modes{3 * s, s}, modes{s, 2 * s}, 2 * s},
		{"nor is the program's part", 4 * s, modes{s, 3 * s}, modes{2 * s, s}, 2 * s},
		{"nothing has happened since", 4 * s, modes{3 * s, s}, modes{2 * s, 2 * s}, 2 * s},
	} {
		task := Task{Ran: c.ran, ticked: c.ticked, shown: c.shown}
		if got := task.System(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
