package binary

import (
	"bytes"
	"compress/zlib"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/sir"
)

// use calls all methods that parse an image.
func use(im *Image) {
	for i, u := range program(im).Regions {
		if i < 200 {
			_, _ = im.Exits(&u)
			_, _ = im.Inside(context.Background(), &u)
			im.lines.at(context.Background(), u.Entry+1)
		}
	}
}

// read opens data as a program and checks that an error is a *FormatError.
func read(t testing.TB, data []byte) *Image {
	t.Helper()
	im, err := New("hostile", memoryFile{bytes.NewReader(data)}, nil)
	var typed *FormatError
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("error %T: %v", err, err)
	}
	return im
}

// small returns a program of a few kilobytes, with debug information and unwind tables.
func small(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "small.c")
	const text = "int sink;\nint twice(int x)\n{\n\treturn x > 3 ? x * 2 + sink : sink;\n}\nint last(int x) { sink = x; return twice(x + 1); }\nvoid _start(void) { last(1); for (;;); }\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "small")
	run(t, "gcc", "-O2", "-g", "-nostdlib", "-static", "-fno-ipa-icf", "-fno-inline", "-Wl,--build-id", "-o", out, source)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTruncated(t *testing.T) {
	whole := small(t)
	if im := read(t, whole); im == nil || len(program(im).Regions) != 3 {
		t.Fatal("the whole program cannot be read")
	}
	for n := 0; n < len(whole); n += 7 {
		if im := read(t, whole[:n]); im != nil {
			use(im)
		}
	}
}

func TestEveryByteDamaged(t *testing.T) {
	whole := small(t)
	step := 1 + len(whole)/3000
	for _, damage := range []byte{0x00, 0xff, 0x80} {
		for i := 0; i < len(whole); i += step {
			bad := bytes.Clone(whole)
			bad[i] = damage
			if im := read(t, bad); im != nil {
				use(im)
			}
		}
	}
}

// TestIrregularFilesAreRefused checks that opening neither blocks on a named pipe nor reads a device.
func TestIrregularFilesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", "/"} {
		_, err := Open(path)
		_, diskErr := FromDisk(path)
		for _, err := range []error{err, diskErr} {
			var typed *FormatError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: error %v", path, err)
			}
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	object := filepath.Join(t.TempDir(), "o.o")
	run(t, "gcc", "-c", "-o", object, "testdata/shapes.c")
	relocatable, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	thirtyTwo := bytes.Clone(small(t))
	thirtyTwo[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	for want, data := range map[string][]byte{
		"not an ELF file": []byte("#!/bin/sh\nexit 0\n"), "not for x86-64": thirtyTwo,
		"neither a program nor a shared library": relocatable,
	} {
		_, err := New("file", memoryFile{bytes.NewReader(data)}, nil)
		var typed *FormatError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// overlapping returns a program of n functions whose names are all the same huge part of the
// string table.
func overlapping(n, nameLen int) []byte {
	const headers, sections = 64 + 56, 4
	names := "\x00" + strings.Repeat("n", nameLen) + "\x00"
	sectionNames := "\x00.symtab\x00.strtab\x00.shstrtab\x00"
	symtab := make([]byte, 0, n*elf.Sym64Size)
	for i := range n {
		symtab = binary.LittleEndian.AppendUint32(symtab, 1)
		symtab = append(symtab, byte(elf.STT_FUNC), 0, 1, 0)
		symtab = binary.LittleEndian.AppendUint64(symtab, uint64(0x1000+i))
		symtab = binary.LittleEndian.AppendUint64(symtab, 1)
	}
	at := func(parts ...int) (sum uint64) {
		for _, p := range parts {
			sum += uint64(p)
		}
		return sum
	}
	var out bytes.Buffer
	put := func(v any) { _ = binary.Write(&out, binary.LittleEndian, v) }
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phnum: 1, Phentsize: 56,
		Ehsize: 64, Shentsize: 64, Shnum: sections, Shstrndx: 3, Shoff: at(headers, len(symtab), len(names), len(sectionNames))}
	copy(h.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1})
	put(h)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X), Vaddr: 0x1000, Memsz: 1 << 30})
	out.Write(symtab)
	out.WriteString(names + sectionNames)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_SYMTAB), Off: headers, Size: at(len(symtab)), Link: 2, Entsize: elf.Sym64Size})
	put(elf.Section64{Name: 9, Type: uint32(elf.SHT_STRTAB), Off: at(headers, len(symtab)), Size: at(len(names))})
	put(elf.Section64{Name: 17, Type: uint32(elf.SHT_STRTAB), Off: at(headers, len(symtab), len(names)), Size: at(len(sectionNames))})
	return out.Bytes()
}

func TestNamesMayNotMultiply(t *testing.T) {
	if im := read(t, overlapping(4, 100)); im == nil || len(program(im).Regions) != 3 {
		t.Fatal("a small program of this form cannot be read")
	}
	data := overlapping(200_000, 60_000) // 12 GB of names in a file of 5 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err := New("hostile", memoryFile{bytes.NewReader(data)}, nil)
	runtime.ReadMemStats(&after)
	var typed *FormatError
	if !errors.As(err, &typed) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("error %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 200<<20 {
		t.Errorf("took %d MB for %d MB, in %v", took>>20, len(data)>>20, time.Since(start))
	}
}

// TestClaimedNames checks that a cache counts no more memory for names than the file has: with 2⁶² bytes the cache would
// drop all other images.
func TestClaimedNames(t *testing.T) {
	data := overlapping(4, 100)
	const kind, size = 4, 32 // offsets in a section header
	first := data[binary.LittleEndian.Uint64(data[40:]):]
	first[kind] = byte(elf.SHT_STRTAB)
	binary.LittleEndian.PutUint64(first[size:], 1<<62)
	if im := read(t, data); im == nil || im.memory < 0 || im.memory > int64(len(data)+4*1000) {
		t.Errorf("a file of %d bytes counts as %+v", len(data), im)
	}
}

func FuzzImage(f *testing.F) {
	f.Add(small(f))
	f.Add(overlapping(5, 10))
	f.Add([]byte(elf.ELFMAG))
	if v, err := FromProcess(os.Getpid())(vdso); err == nil {
		b := make([]byte, v.(memoryFile).Size())
		if _, err := v.ReadAt(b, 0); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if im := read(t, data); im != nil {
			use(im)
		}
	})
}

func FuzzInstruction(f *testing.F) {
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa})
	f.Add([]byte{0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x46, 0x01})
	f.Add([]byte{0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01})
	f.Fuzz(func(t *testing.T, code []byte) {
		if inst, ok := decodeInstruction(code); ok && (inst.Len <= 0 || inst.Len > len(code)) {
			t.Errorf("% x: length %d", code, inst.Len)
		}
	})
}

// squeezed returns a program with compressed debug sections. Each section has bytesOfEach
// uncompressed bytes, but its header says claims.
func squeezed(t *testing.T, bytesOfEach, claims int) []byte {
	t.Helper()
	names := "\x00.debug_info\x00.debug_abbrev\x00.debug_line\x00.shstrtab\x00"
	var stream bytes.Buffer
	header := binary.LittleEndian.AppendUint64([]byte{1, 0, 0, 0, 0, 0, 0, 0}, uint64(claims))
	stream.Write(binary.LittleEndian.AppendUint64(header, 1))
	w := zlib.NewWriter(&stream)
	for range bytesOfEach >> 20 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	const headers = 64 + 56
	at := uint64(headers + stream.Len())
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phnum: 1, Phentsize: 56,
		Ehsize: 64, Shentsize: 64, Shnum: 5, Shstrndx: 4, Shoff: at + uint64(len(names)),
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}}
	var out bytes.Buffer
	put := func(v any) { _ = binary.Write(&out, binary.LittleEndian, v) }
	put(h)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X), Vaddr: 0x1000, Memsz: 1 << 20})
	out.Write(stream.Bytes())
	out.WriteString(names)
	put(elf.Section64{})
	for _, name := range []uint32{1, 13, 27} {
		put(elf.Section64{Name: name, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), Off: headers, Size: uint64(stream.Len())})
	}
	put(elf.Section64{Name: 39, Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))})
	return out.Bytes()
}

// TestDebugInformationMayNotMultiply reads programs of half a megabyte whose debug information
// would take gigabytes, including programs with false sizes in section headers.
func TestDebugInformationMayNotMultiply(t *testing.T) {
	const many = 512 << 20
	for _, claims := range []int{many, 1 << 20} {
		data := squeezed(t, many, claims)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if im := read(t, data); im != nil {
			use(im)
			im.lines.at(context.Background(), 0x1000)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
			t.Errorf("a file of %d KB with a declared size of %d took %d MB", len(data)>>10, claims, took>>20)
		}
	}
}

// deep returns a program with debug information of seventeen million nested entries.
func deep(t *testing.T) []byte {
	t.Helper()
	abbreviations := []byte{
		1, 0x11, 1, 0x10, 0x17, 0, 0, // a compile unit with a line program
		2, 0x2e, 1, 0, 0, // a function with children
		0,
	}
	const levels = 17_000_000
	info := binary.LittleEndian.AppendUint32(nil, 7+5+levels)
	info = append(info, 4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0)
	info = append(info, bytes.Repeat([]byte{2}, levels)...)
	dir := t.TempDir()
	path := filepath.Join(dir, "deep")
	if err := os.WriteFile(path, small(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"info": info, "abbrev": abbreviations} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "objcopy", "--update-section", ".debug_"+name+"="+filepath.Join(dir, name), path)
	}
	run(t, "objcopy", "--compress-debug-sections=zlib", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDeepEntries reads a program of some kilobytes that would exhaust the stack of a reader
// that recurses, which ends the process.
func TestDeepEntries(t *testing.T) {
	data := deep(t)
	if im := read(t, data); im == nil || len(program(im).Regions) != 3 {
		t.Errorf("a program of %d bytes has not its functions", len(data))
	}
}

// TestStructureEndsWithItsContext ends the context of one reader while another one waits for
// the same structure: the other one gets it.
func TestStructureEndsWithItsContext(t *testing.T) {
	im := read(t, deep(t))
	leaving, leave := context.WithCancel(t.Context())
	type result struct {
		units int
		err   error
	}
	results := make(chan result, 2)
	for _, ctx := range []context.Context{leaving, t.Context()} {
		go func() {
			p, err := im.Program(ctx)
			results <- result{len(p.Regions), err}
		}()
		for end := time.Now().Add(10 * time.Second); len(im.program.turn) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the structure is not read")
			}
		}
	}
	leave()
	if first := <-results; !errors.Is(first.err, context.Canceled) {
		t.Errorf("the one who left: %+v", first)
	}
	if second := <-results; second.err != nil || second.units != 3 {
		t.Errorf("the one who stayed: %+v", second)
	}
}

// TestManyInstances reads a function of some size, of which the debug information says that other functions are inlined
// into it at 5,000 places: with millions, comparing all instructions with all places would take hours.
func TestManyInstances(t *testing.T) {
	const instructions, instances = 20_000, 5_000
	dir := t.TempDir()
	path, source := filepath.Join(dir, "many"), filepath.Join(dir, "many.c")
	text := fmt.Sprintf("void wide(void) { __asm__(\".rept %d\\n incl %%eax\\n .endr\"); }\nvoid _start(void) { wide(); for (;;); }\n", instructions)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", "-g", "-nostdlib", "-static", "-o", path, source)
	wide := unit(t, open(t, path), "wide")
	abbreviations := []byte{
		1, 0x11, 1, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, // a compile unit with a line program and addresses
		2, 0x2e, 0, 0x03, 0x08, 0, 0, // a function with a name
		3, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0, // an inlined function: which, and addresses
		0,
	}
	le := binary.LittleEndian
	addresses := func(b []byte, size uint64) []byte {
		return le.AppendUint32(le.AppendUint64(b, wide.Entry), uint32(size))
	}
	info := addresses([]byte{4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0}, wide.Size)
	function := 4 + len(info)
	info = append(info, 2, 'f', 0)
	for range instances {
		info = addresses(le.AppendUint32(append(info, 3), uint32(function)), 16)
	}
	info = append(le.AppendUint32(nil, uint32(len(info)+1)), append(info, 0)...)
	for name, content := range map[string][]byte{"info": info, "abbrev": abbreviations} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "objcopy", "--update-section", ".debug_"+name+"="+filepath.Join(dir, name), path)
	}
	inside, err := open(t, path).Inside(t.Context(), &wide)
	refused := slices.ContainsFunc(inside, func(r sir.Region) bool { return r.Code.Uncounted == errLargeFunction.Error() })
	if err != nil || len(inside) != instances || !refused {
		t.Errorf("%d regions, refused: %v, %v", len(inside), refused, err)
	}
}
