//go:build linux

// Package inheritance closes inherited files in programs that this process starts. It
// keeps no state; its function may be called from any goroutine.
package inheritance

import (
	"math"

	"golang.org/x/sys/unix"
)

// Withhold prevents programs that this process starts later from inheriting files other
// than those intended for them. Go does this for files it opens itself, but not for files
// beyond standard error that this process has inherited. Its parent may have left any
// file open, and CRIU could not save a program with, for example, one end of another
// process's connection.
func Withhold() {
	const first = 3
	_ = unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // impossible on kernels before 5.11
}
