//go:build linux && amd64

package linux

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestRestoreOfReplacedCode checks that a breakpoint is not restored in a file that was mapped in the place of its code
// and has the byte of an INT3 there, and that it is restored in code that it was written to.
func TestRestoreOfReplacedCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(path, []byte{int3, int3}, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 2, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	memory, err := openMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	const original = 0x55
	b := &breakpoint{addr: uint64(uintptr(unsafe.Pointer(&page[0]))), original: original}
	restore(os.Getpid(), memory, b)
	if page[0] != int3 {
		t.Error("the code of another file was changed")
	}
	if _, err := memory.WriteAt([]byte{int3}, int64(b.addr)); err != nil {
		t.Fatal(err)
	}
	restore(os.Getpid(), memory, b)
	if page[0] != original || page[1] != int3 {
		t.Errorf("the code is %#x, want %#x %#x", page, original, int3)
	}
}
