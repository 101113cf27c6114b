package safedwarf

import (
	"bytes"
	"context"
	"debug/dwarf"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const scannedSource = `
struct point { int x, y; };
static inline int twice(int x) { return 2 * x; }
static int many(struct point *p, int n) { int sum = 0; for (int i = 0; i < n; i++) sum += twice(p[i].x) * p[i].y; return sum; }
int main(int argc, char **argv) { struct point p[4] = {{argc, 2}}; (void)argv; return many(p, argc) + twice(argc); }
`

// TestScan compares the entries of programs of several compilers and versions of DWARF with those of debug/dwarf.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte(scannedSource), 0o600); err != nil {
		t.Fatal(err)
	}
	var programs []string
	for i, c := range [][]string{{"gcc", "-gdwarf-4", "-O2"}, {"gcc", "-gdwarf-5", "-O2"}, {"clang", "-gdwarf-4", "-O1"}, {"clang", "-gdwarf-5", "-O1", "-gz"}} {
		out := filepath.Join(dir, string(rune('a'+i)))
		if text, err := exec.Command(c[0], append(c[1:], "-o", out, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c, err, text)
		}
		programs = append(programs, out)
	}
	entries := 0
	for _, path := range programs {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file, err := elf.NewFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), f, file)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for u := range d.Units() {
			entries += compareUnit(t, d, u)
		}
	}
	if entries < 150 {
		t.Errorf("only %d entries were compared", entries)
	}
}

// compareUnit compares the entries of a unit, and returns their number.
func compareUnit(t *testing.T, d *Data, u Unit) (n int) {
	t.Helper()
	s, err := d.Scan(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	r := d.dwarf.Reader()
	for r.Seek(u.First); ; n++ {
		more, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return n
		}
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Tag != s.Tag || e.Children != s.Children || e.Tag != 0 && e.Offset != s.Offset {
			t.Fatalf("%#x: %v, children %v, want %#x: %v", s.Offset, s.Tag, s.Children, e.Offset, e.Tag)
		}
		compareEntry(t, d, s, e)
	}
}

func compareEntry(t *testing.T, d *Data, s *Scan, e *dwarf.Entry) {
	t.Helper()
	for _, a := range scanned {
		same := true
		switch want := e.Val(a).(type) {
		case nil:
			same = !s.Has(a)
		case int64:
			got, ok := s.Int(a)
			same = ok && got == want
		case uint64:
			if got, ok := s.Addr(a); ok { // others are lists
				same = got == want
			}
		case dwarf.Offset:
			got, ok := s.Ref(a)
			same = ok && got == want
		case bool:
			same = s.Flag(a) == want
		case string:
			same = string(s.Text(a)) == want
		case []byte:
			got, ok := s.Block(a)
			same = ok && bytes.Equal(got, want)
		}
		if !same {
			t.Fatalf("%#x: %v of %v is not %v", e.Offset, a, e.Tag, e.Val(a))
		}
	}
	want, wantErr := d.Ranges(e)
	got, err := s.Ranges(nil)
	if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
		t.Fatalf("%#x: ranges %#x (%v), want %#x (%v)", e.Offset, got, err, want, wantErr)
	}
}

// FuzzScan reads damaged units.
func FuzzScan(f *testing.F) {
	f.Add(append([]byte{1}, chained(3)...), abbreviations, []byte{7, 1, 2, 0})
	f.Add([]byte{1, 5, 0, 0, 0}, []byte{1, 0x11, 1, 0x55, 0x23, 0x11, 0x1b, 0x03, 0x16, 0, 0, 0}, []byte{2, 1, 1, 4, 1, 1, 0})
	f.Fuzz(func(t *testing.T, entries, abbreviations, lists []byte) {
		info := unit(0, entries)
		info[4] = 4 + byte(len(lists)%2) // the version
		raw, file := program(t, map[string][]byte{".debug_info": info, ".debug_abbrev": abbreviations, ".debug_rnglists": lists, ".debug_ranges": lists, ".debug_str": lists, ".debug_addr": lists})
		d, err := Open(context.Background(), bytes.NewReader(raw), file)
		if err != nil {
			return
		}
		defer d.Close()
		for u := range d.Units() {
			s, err := d.Scan(context.Background(), u)
			if err != nil {
				continue
			}
			for more, err := s.Next(); more && err == nil; more, err = s.Next() {
				for _, a := range scanned {
					s.Int(a)
					s.Addr(a)
					s.Flag(a)
					s.Block(a)
					s.Text(a)
					if at, ok := s.Ref(a); ok {
						other := *s
						if other.Seek(at) == nil {
							_, _ = other.Next()
						}
					}
				}
				_, _ = s.Ranges(nil)
				if s.Offset%3 == 0 {
					_ = s.SkipChildren()
				}
			}
		}
	})
}
