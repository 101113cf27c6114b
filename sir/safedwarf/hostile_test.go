package safedwarf

import (
	"bytes"
	"compress/zlib"
	"context"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// program returns an ELF file with sections, the debug sections compressed.
func program(t testing.TB, content map[string][]byte) ([]byte, *elf.File) {
	t.Helper()
	const header = 64
	var body, names bytes.Buffer
	table := []elf.Section64{{}}
	names.WriteByte(0)
	for name, b := range content {
		at := header + body.Len()
		_ = binary.Write(&body, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(len(b)), Addralign: 1})
		w := zlib.NewWriter(&body)
		_, _ = w.Write(b)
		w.Close()
		table = append(table, elf.Section64{Name: uint32(names.Len()), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), Off: uint64(at), Size: uint64(header + body.Len() - at)})
		names.WriteString(name + "\x00")
	}
	table = append(table, elf.Section64{Name: uint32(names.Len()), Type: uint32(elf.SHT_STRTAB), Off: uint64(header + body.Len())})
	names.WriteString(".names\x00")
	table[len(table)-1].Size = uint64(names.Len())
	body.Write(names.Bytes())
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64),
		Version: 1, Ehsize: header, Shentsize: 64, Shnum: uint16(len(table)), Shstrndx: uint16(len(table) - 1), Shoff: uint64(header + body.Len()),
	})
	out.Write(body.Bytes())
	_ = binary.Write(&out, binary.LittleEndian, table)
	file, err := elf.NewFile(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), file
}

func open(t testing.TB, content map[string][]byte) (*Data, error) {
	t.Helper()
	raw, file := program(t, content)
	d, err := Open(t.Context(), bytes.NewReader(raw), file)
	if err == nil {
		t.Cleanup(d.Close)
	}
	return d, err
}

// unit returns a unit of DWARF 4 with entries.
func unit(abbrev uint32, entries []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(7+len(entries)))
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = binary.LittleEndian.AppendUint32(b, abbrev)
	return append(append(b, 8), entries...)
}

// Abbreviations of the tests: a compile unit, a block with children and no attributes, a
// type that refers to another by 4 bytes, a structure and a member with a type.
var abbreviations = []byte{
	1, 0x11, 1, 0, 0,
	2, 0x0b, 1, 0, 0,
	3, 0x26, 0, 0x49, 0x13, 0, 0,
	4, 0x13, 1, 0, 0,
	5, 0x0d, 0, 0x49, 0x13, 0, 0,
	0,
}

const unitHeader = 11

// TestDeepEntries skips ten million levels of entries, which need no stack.
func TestDeepEntries(t *testing.T) {
	entries := append([]byte{1}, bytes.Repeat([]byte{2}, 10<<20)...)
	d, err := open(t, map[string][]byte{".debug_info": unit(0, entries), ".debug_abbrev": abbreviations})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Reader(t.Context())
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.SkipChildren(); err != nil {
		t.Error(err)
	}
}

// chained returns entries of types, each of which refers to the next one.
func chained(n int) []byte {
	entries := []byte{1}
	for i := range n {
		entries = binary.LittleEndian.AppendUint32(append(entries, 3), uint32(unitHeader+1+5*(i+1)))
	}
	return entries
}

// TestDeepTypes refuses chains of types that debug/dwarf would follow by recursion, also if a
// structure refers to each type of the chain directly.
func TestDeepTypes(t *testing.T) {
	const n = 100_000
	entries := chained(n)
	structure := len(entries)
	entries = append(entries, 4)
	for i := range n {
		entries = binary.LittleEndian.AppendUint32(append(entries, 5), uint32(unitHeader+1+5*i))
	}
	d, err := open(t, map[string][]byte{".debug_info": unit(0, entries), ".debug_abbrev": abbreviations})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, structure} {
		if _, err := d.Type(t.Context(), dwarf.Offset(unitHeader+at)); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("the type at %d: %v", at, err)
		}
	}
	short := dwarf.Offset(unitHeader + 1 + 5*(n-100)) // the chain ends at the structure, which is as deep
	if _, err := d.Type(t.Context(), short); err == nil {
		t.Error("a short way to a deep structure is accepted")
	}
}

// TestShortTypes reads a chain of types that is not too long.
func TestShortTypes(t *testing.T) {
	entries := chained(100)
	entries = append(entries, 4, 0)
	d, err := open(t, map[string][]byte{".debug_info": unit(0, entries), ".debug_abbrev": abbreviations})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Type(t.Context(), unitHeader+1)
	for range 100 {
		q, ok := got.(*dwarf.QualType)
		if !ok {
			t.Fatalf("%T, %v", got, err)
		}
		got = q.Type
	}
	if _, ok := got.(*dwarf.StructType); !ok {
		t.Errorf("the chain ends with %T", got)
	}
}

// TestRefused opens files of a few kilobytes that would take much memory.
func TestRefused(t *testing.T) {
	small := unit(0, []byte{1})
	overlapping := bytes.Repeat([]byte{1, 0x11, 0, 0, 0}, 5000) // without terminators: each table extends to the end
	var units []byte
	for i := range 5000 {
		units = append(units, unit(uint32(5*i), []byte{1})...)
	}
	wide := append([]byte{1, 0x11, 0}, bytes.Repeat([]byte{3, 0x19}, 100_000)...)
	for want, c := range map[string]map[string][]byte{
		"claims":        {".debug_info": make([]byte, 300<<20), ".debug_abbrev": {0}},
		"overlap":       {".debug_info": units, ".debug_abbrev": overlapping},
		"units":         {".debug_info": bytes.Repeat(small, mostUnits+1), ".debug_abbrev": abbreviations},
		"attributes":    {".debug_info": small, ".debug_abbrev": append(wide, 0, 0, 0)},
		"abbreviations": {".debug_info": small, ".debug_abbrev": bytes.Repeat([]byte{0}, 3<<20)},
		"a string":      {".debug_info": small, ".debug_abbrev": abbreviations, ".debug_str": bytes.Repeat([]byte{'a'}, 2<<20)},
		"no debug":      {".debug_info": small},
	} {
		raw, file := program(t, c)
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := Open(t.Context(), f, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a file of %d bytes: %v", want, len(raw), err)
		}
	}
}

// lineProgram returns the header of DWARF 5 with tables, and a program.
func lineProgram(tables, program []byte) []byte {
	rest := append([]byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}, tables...)
	b := []byte{5, 0, 8, 0}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rest)))
	b = append(append(b, rest...), program...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// lines opens a line program of a unit in a directory.
func lines(t *testing.T, program []byte, more map[string][]byte) (*Lines, error) {
	t.Helper()
	abbrev := []byte{1, 0x11, 0, 0x10, 0x17, 0x1b, 0x08, 0, 0, 0}
	content := map[string][]byte{".debug_info": unit(0, append([]byte{1, 0, 0, 0, 0}, "/dir\x00"...)), ".debug_abbrev": abbrev, ".debug_line": program}
	maps.Copy(content, more)
	d, err := open(t, content)
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Entry(t.Context(), unitHeader)
	if err != nil {
		t.Fatal(err)
	}
	return d.Lines(e)
}

// TestFilesMayNotMultiply reads tables of files that claim terabytes, or refer to one long
// string many times.
func TestFilesMayNotMultiply(t *testing.T) {
	claim := binary.AppendUvarint([]byte{1, 1, 0x1f}, 1<<40)
	if _, err := lines(t, lineProgram(claim, nil), nil); err == nil {
		t.Error("a table of 2^40 directories is accepted")
	}
	if _, err := lines(t, lineProgram(binary.AppendUvarint([]byte{0}, 1<<40), nil), nil); err == nil {
		t.Error("a table of 2^40 empty directories is accepted")
	}
	const files = mostFiles
	tables := append(binary.AppendUvarint([]byte{0, 0, 1, 1, 0x1f}, files), make([]byte, 4*files)...)
	long := append(bytes.Repeat([]byte{'a'}, mostText-1), 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := lines(t, lineProgram(tables, nil), map[string][]byte{".debug_line_str": long})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.File(files - 1)); n != longestPath {
		t.Errorf("the last file has a name of %d bytes", n)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("the table took %d MB", took)
	}
}

// TestPaths checks which paths files have.
func TestPaths(t *testing.T) {
	tables := append([]byte{1, 1, 8, 3}, "/dir\x00sub\x00/abs\x00"...)
	tables = append(append(tables, 2, 1, 8, 2, 0x0b, 4), "a.c\x00\x00b.c\x00\x01c.c\x00\x02/d.c\x00\x01"...)
	l, err := lines(t, lineProgram(tables, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"/dir/a.c", "/dir/sub/b.c", "/abs/c.c", "/d.c", ""} {
		if got := l.File(n); got != want {
			t.Errorf("file %d is %q, want %q", n, got, want)
		}
	}
}

// counting is a context that ends after some calls of Err.
type counting struct {
	context.Context
	left int
}

func (c *counting) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestReadingEndsWithItsContext ends contexts while the parts of a file are read.
func TestReadingEndsWithItsContext(t *testing.T) {
	const few = 3
	raw, file := program(t, map[string][]byte{".debug_info": make([]byte, 10<<20), ".debug_abbrev": {0}})
	if _, err := Open(&counting{t.Context(), few}, bytes.NewReader(raw), file); !errors.Is(err, context.Canceled) {
		t.Errorf("to open: %v", err)
	}
	entries := append([]byte{1}, bytes.Repeat([]byte{2}, 10_000)...)
	d, err := open(t, map[string][]byte{".debug_info": unit(0, append(entries, chained(10_000)...)), ".debug_abbrev": abbreviations})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Reader(&counting{t.Context(), few})
	read := 0
	for err = error(nil); err == nil; read++ {
		_, err = r.Next()
	}
	if !errors.Is(err, context.Canceled) || read > 1000 {
		t.Errorf("after %d entries: %v", read, err)
	}
	r = d.Reader(&counting{t.Context(), few})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if err := r.SkipChildren(); !errors.Is(err, context.Canceled) {
		t.Errorf("to skip children: %v", err)
	}
	l, err := lines(t, lineProgram([]byte{0, 0, 0, 0}, bytes.Repeat([]byte{1}, 100_000)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Each(&counting{t.Context(), few}, func(Row, Row) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("to run a line program: %v", err)
	}
}

// TestBudget exceeds the limit for all files, and frees memory both ways.
func TestBudget(t *testing.T) {
	raw, file := program(t, map[string][]byte{".debug_info": unit(0, []byte{1}), ".debug_abbrev": abbreviations})
	again := func() error {
		d, err := Open(t.Context(), bytes.NewReader(raw), file)
		if err == nil {
			d.Close()
		}
		return err
	}
	used := inUse.Load()
	d, err := Open(t.Context(), bytes.NewReader(raw), file)
	if err != nil {
		t.Fatal(err)
	}
	if size := inUse.Load() - used; size != d.reserved || size == 0 {
		t.Errorf("%d bytes were reserved", size)
	}
	inUse.Add(MostInUse - used)
	if err := again(); !errors.Is(err, ErrBudget) {
		t.Errorf("beyond the budget: %v", err)
	}
	inUse.Add(used - MostInUse)
	if err := again(); err != nil {
		t.Error(err)
	}
	d.Close()
	if inUse.Load() != used {
		t.Error("Close returns no memory")
	}
	if d, err = Open(t.Context(), bytes.NewReader(raw), file); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(d)
	d = nil
	for range 500 {
		runtime.GC()
		if inUse.Load() == used {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the memory of a collected file is not returned")
}

// TestNamesOfGoMayNotMultiply reads a function table whose functions share one long name, from
// different positions in it.
func TestNamesOfGoMayNotMultiply(t *testing.T) {
	const functions, length, header = 4000, 1 << 20, 72
	le := binary.LittleEndian
	table := append(le.AppendUint32(nil, 0xfffffff1), 0, 0, 1, 8)
	for _, word := range []uint64{functions, 0, 0, header, header, header, header, header + length} {
		table = le.AppendUint64(table, word)
	}
	table = append(append(table, bytes.Repeat([]byte{'a'}, length-1)...), 0)
	const entries = 8*functions + 4
	for i := range uint32(functions) {
		table = le.AppendUint32(le.AppendUint32(table, i), entries+44*i)
	}
	table = le.AppendUint32(table, functions)
	for i := range uint32(functions) {
		table = append(le.AppendUint32(le.AppendUint32(table, i), i), make([]byte, 36)...)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := GoFunctions(table, 0x1000)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("error %v", err)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("a table of %d KB took %d MB", len(table)>>10, took)
	}
}

// TestClaimedGoFunctions reads a table of a few bytes that claims to have 2^32 functions.
func TestClaimedGoFunctions(t *testing.T) {
	table := append(binary.LittleEndian.AppendUint32(nil, 0xfffffff1), 0, 0, 1, 8)
	table = append(binary.LittleEndian.AppendUint64(table, 1<<32-2), make([]byte, 200)...)
	for n := range len(table) {
		if list, err := GoFunctions(table[:n], 0x1000); err == nil {
			t.Errorf("%d bytes: %d functions", n, len(list))
		}
	}
}

// FuzzLines runs any line program; its rows are limited by its length.
func FuzzLines(f *testing.F) {
	f.Add(lineProgram([]byte{0, 0, 0, 0}, []byte{0, 9, 2, 0, 16, 0, 0, 0, 0, 0, 0, 1, 20, 21, 2, 4, 0, 1, 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &Lines{str: b, lineStr: b}
		if l.header(cursor{b: b}) != nil {
			return
		}
		rows := 0
		_ = l.Each(t.Context(), func(from, to Row) bool {
			_ = fmt.Sprint(l.File(from.File), l.File(math.MaxInt))
			rows++
			return true
		})
		if rows > len(b) {
			t.Errorf("%d rows of %d bytes", rows, len(b))
		}
	})
}
