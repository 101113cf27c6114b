//go:build linux

package proc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path"
)

// TypedName returns the file name by which a process's program was started. It may be the
// name of a symbolic link, as redis-server is a link to redis-check-rdb. It is "" if the
// process does not reveal it, and for scripts, whose interpreter is another program.
//
// The name is in memory that the process may write, so it is good for display only.
func TypedName(pid int) string {
	at, ok := auxiliary(pid, atExecFn)
	if !ok {
		return ""
	}
	name := path.Base(stringAt(pid, at))
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	// For a script the kernel provides the script's name here, but the interpreter's as
	// the first argument. A program may have appended text to its first argument since.
	first, _, _ := bytes.Cut(args, []byte{0})
	first, _, _ = bytes.Cut(first, []byte{' '})
	if name == "." || name == "/" || path.Base(string(first)) != name {
		return ""
	}
	return name
}

// atExecFn is the type of the auxiliary vector's entry (getauxval(3)) with the address of
// the executed path.
const atExecFn = 31

// auxiliary returns an entry of the auxiliary vector of a process.
func auxiliary(pid int, kind uint64) (value uint64, ok bool) {
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, false
	}
	const entry = 16
	for ; len(vector) >= entry; vector = vector[entry:] {
		if binary.LittleEndian.Uint64(vector) == kind {
			return binary.LittleEndian.Uint64(vector[8:]), true
		}
	}
	return 0, false
}

// stringAt reads a path from the memory of a process.
func stringAt(pid int, addr uint64) string {
	const longest = 4096 // PATH_MAX
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil || addr > 1<<62 {
		return ""
	}
	defer mem.Close()
	b := make([]byte, longest)
	n, err := mem.ReadAt(b, int64(addr))
	if err != nil && n == 0 && err != io.EOF {
		return ""
	}
	text, _, terminated := bytes.Cut(b[:n], []byte{0})
	if !terminated {
		return ""
	}
	return string(text)
}
