package landing

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// module reads a copy of this test program, and returns it with the copy.
func module(t *testing.T) (*Module, *os.File) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	file, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			m, err := Read(f, p.Off, p.Filesz)
			if err != nil {
				t.Fatal(err)
			}
			return m, f
		}
	}
	t.Fatal("no code")
	return nil, nil
}

// TestNeighbourhood compares what a pass for a part of the code finds with the pass for all of it.
func TestNeighbourhood(t *testing.T) {
	m, _ := module(t)
	all := m.near(0, m.Size)
	part := newPlaces(64<<10+3, 256<<10+7)
	if err := m.mapped(func(s *scan) error { return s.find(part) }); err != nil || all == nil {
		t.Fatal(err, all)
	}
	landings, called := 0, 0
	for at := part.begin; at < part.end; at++ {
		if got, want := part.landings.has(at-part.begin), all.landings.has(at); got != want {
			t.Fatalf("a landing at %#x: %v, of the whole code %v", at, got, want)
		} else if got {
			landings++
		}
		if got, want := part.called.has(at-part.begin), all.called.has(at); got != want {
			t.Fatalf("a call of %#x: %v, of the whole code %v", at, got, want)
		} else if got {
			called++
		}
	}
	if landings < 1000 || called < 50 || called > landings {
		t.Errorf("%d landings, %d called", landings, called)
	}
}

// TestCopiedFile compares what a pass over a copy of the file finds with a pass over the mapped file.
func TestCopiedFile(t *testing.T) {
	m, _ := module(t)
	var found [2]*places
	for i, contents := range []func(*os.File, int) ([]byte, func([]byte), error){mapFile, read} {
		found[i] = newPlaces(0, m.Size)
		if err := m.within(contents, func(s *scan) error { return s.find(found[i]) }); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(found[0].landings, found[1].landings) || !slices.Equal(found[0].called, found[1].called) {
		t.Error("the passes over the file and over its copy have other results")
	}
	proc, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	if isLocal(proc) {
		t.Error("a file that a program makes while it is read would be mapped")
	}
}

// TestCode reads parts of the code.
func TestCode(t *testing.T) {
	m, f := module(t)
	whole := make([]byte, m.Size)
	if _, err := f.ReadAt(whole, int64(m.offset)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []uint64{0, 10, blockSize - 3, blockSize, 5*blockSize - 1, m.Size - 2, m.Size, m.Size + 1, 20} {
		for _, length := range []uint64{0, 1, 5, blockSize, 4 * blockSize} {
			want := whole[min(at, m.Size):min(at+length, m.Size)]
			if got := m.Code(at, at+length); !slices.Equal(got, want) {
				t.Errorf("%d bytes at %#x: %d bytes", length, at, len(got))
			}
		}
	}
}

// TestCutFile examines a file that its owner cuts: control may lead anywhere in code that cannot be read.
func TestCutFile(t *testing.T) {
	m, f := module(t)
	last := m.Size - 100
	if m.Lands(last, last) || m.TakesOwn(last, last+10) {
		t.Error("control leads to a place before the file is cut")
	}
	if err := f.Truncate(int64(m.offset)); err != nil {
		t.Fatal(err)
	}
	m.last.Store(nil)
	if !m.Lands(last, last+10) || !m.TakesOwn(last, last+10) || m.IsEntry(1) || len(m.Code(last, last+10)) > 0 {
		t.Error("something is known of code that cannot be read")
	}
	if err := f.Truncate(int64(m.offset + m.Size)); err != nil { // the file has its length again
		t.Fatal(err)
	}
	if err := m.mapped(func(s *scan) error {
		if err := f.Truncate(0); err != nil {
			t.Error(err)
		}
		return s.find(newPlaces(0, m.Size))
	}); err == nil {
		t.Error("the code was examined, although the file was cut meanwhile")
	}
}

// TestTablesAreDropped checks that the memory of code is given back whose addresses are taken everywhere.
func TestTablesAreDropped(t *testing.T) {
	const size, every, base = 3 * piece, 1 << 16, 1 << 20
	code, dropped := make([]byte, size), 0
	s := &scan{code: segment{base, code}, all: []segment{{base, code}}, found: newPlaces(0, size), drop: func(part []byte) { dropped += len(part) }}
	for at := uint64(base); at < base+size; at += every {
		s.tables = append(s.tables, at)
	}
	s.relativeTables()
	if least := size - 4*every; dropped < least || dropped > size {
		t.Errorf("%d bytes of %d were dropped", dropped, size)
	}
}
