//go:build linux

package proc

import (
	"bytes"
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
