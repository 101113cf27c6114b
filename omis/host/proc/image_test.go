//go:build linux

package proc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// covered starts a process that has mapped a library and then mounted another file over
// the library's path.
func covered(t *testing.T, by string) (library string, id omis.ProcID) {
	t.Helper()
	library = filepath.Join(t.TempDir(), "library.so")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, text, 0o755); err != nil {
		t.Fatal(err)
	}
	s := subject.Start(t, exec.Command(subject.Compile(t, "covered", "testdata/covered.c"), library, by))
	if line := s.Line(); line != "ready" {
		t.Fatal(line)
	}
	if id, err = proc.Identify(s.PID); err != nil {
		t.Fatal(err)
	}
	return library, id
}

// TestPipeOverAMappedFile mounts a pipe over a library, which would block a reader of the
// path forever.
func TestPipeOverAMappedFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	library, id := covered(t, pipe)
	found := make(chan []node.Module, 1)
	go func() {
		modules, err := proc.Modules(id)
		if err != nil {
			t.Error(err)
		}
		found <- modules
	}()
	select {
	case modules := <-found:
		if !slices.ContainsFunc(modules, func(m node.Module) bool { return m.Path == library }) {
			t.Errorf("no %s in %v", library, modules)
		}
	case <-time.After(10 * time.Second):
		if f, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			f.Close() // f.Close() // unblocks the goroutine
		}
		t.Fatal("reading the modules blocks")
	}
}

// TestSecretOverAMappedFile mounts a file over a library that the monitor can read but
// the process perhaps cannot.
func TestSecretOverAMappedFile(t *testing.T) {
	library, id := covered(t, "/bin/true")
	files, err := proc.FilesOf(id.PID)
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := f.Stat()
	want, _ := os.Stat(library)
	if err != nil || !os.SameFile(got, want) {
		t.Errorf("another file was opened: %v, %v", got, err)
	}
	if f, err := files.Open("/etc/passwd"); err == nil {
		f.Close()
		t.Error("a file that is not mapped was opened")
	}
}

// program writes a file of an ELF header, a segment and sections.
func program(t *testing.T, size int64, segment elf.Prog64, sections ...elf.Section64) *os.File {
	t.Helper()
	const headers = 64 + 56
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phnum: 1, Phentsize: 56,
		Ehsize: 64, Shentsize: 64, Shnum: uint16(len(sections) + 2), Shstrndx: 1, Shoff: headers + 64,
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
	}
	names := "\x00.names\x00.debug_info\x00.other\x00"
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(h)
	put(segment)
	b.WriteString(names + strings.Repeat("\x00", 64-len(names)))
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_STRTAB), Off: headers, Size: uint64(len(names))})
	for _, s := range sections {
		put(s)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "program"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) < size {
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// TestProgramsThatClaimTooMuch reads files of a few kilobytes that contain or claim
// gigabytes in holes.
func TestProgramsThatClaimTooMuch(t *testing.T) {
	const other = 20 // offset of the section's name
	load := func(size uint64) elf.Prog64 {
		return elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X), Filesz: size, Memsz: size}
	}
	bits := uint32(elf.SHT_PROGBITS)
	for name, f := range map[string]*os.File{
		"a segment of holes":         program(t, 1<<30, load(1<<30)),
		"a segment beyond the file":  program(t, 0, load(1<<60)),
		"a section of holes":         program(t, 1<<33, load(64), elf.Section64{Name: other, Type: bits, Size: 1 << 33}),
		"a section beyond the file":  program(t, 0, load(64), elf.Section64{Name: other, Type: bits, Size: 1 << 60}),
		"a section that is squeezed": program(t, 0, load(64), elf.Section64{Name: other, Type: bits, Flags: uint64(elf.SHF_COMPRESSED), Size: 64}),
	} {
		if _, err := proc.ReadELF(f); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestRealProgramsAreAccepted reads genuine programs.
func TestRealProgramsAreAccepted(t *testing.T) {
	for _, path := range []string{"/proc/self/exe", "/bin/true", "/lib/x86_64-linux-gnu/libc.so.6"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file, err := proc.ReadELF(f)
		if err == nil {
			err = proc.CheckSymbols(file)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
