//go:build linux && amd64

package unwind

import (
	"bytes"
	"debug/elf"
	"testing"
)

// TestIndex compares the entries that an index finds with those of the whole table, in libraries whose functions are in C,
// in C++ and in assembler.
func TestIndex(t *testing.T) {
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		x := readIndex(file)
		if x == nil {
			t.Fatalf("%s has no index", path)
		}
		all := entries(file, ".eh_frame").Append(nil)
		for _, want := range all {
			for _, at := range []uint64{want.Begin(), want.End() - 1, want.End()} {
				found := x.find(at)
				if other, err := all.FDEForPC(at); err != nil {
					if found != nil {
						t.Fatalf("%s: an entry for %#x, which no function has", path, at)
					}
				} else if found == nil || found.Begin() != other.Begin() || found.End() != other.End() ||
					!bytes.Equal(found.Instructions, other.Instructions) || !bytes.Equal(found.CIE.InitialInstructions, other.CIE.InitialInstructions) || found.CIE.Augmentation != other.CIE.Augmentation {
					t.Fatalf("%s: %#x: %+v, want %+v", path, at, found, other)
				}
			}
		}
		if len(all) < 1000 {
			t.Errorf("%s has only %d entries", path, len(all))
		}
	}
}

// TestDamagedIndex looks for entries in damaged tables.
func TestDamagedIndex(t *testing.T) {
	file, err := elf.Open("/lib/x86_64-linux-gnu/libc.so.6")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i := range 6 {
		x := readIndex(file)
		for at := i; at < len(x.data); at += 40 {
			x.data[at] ^= byte(0xff >> (i % 8))
		}
		x.rows[rowSize*i+rowSize/2+3] ^= 0x40
		for row := range x.Len() {
			if e := x.find(x.begin(row)); e != nil && !e.Cover(x.begin(row)) {
				t.Fatalf("an entry from %#x to %#x for %#x", e.Begin(), e.End(), x.begin(row))
			}
		}
	}
}
