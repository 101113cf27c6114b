//go:build linux

package criu

import (
	"math"

	"golang.org/x/sys/unix"
)

// WithholdFiles prevents programs that this process starts later from inheriting files
// other than those intended for them. Go does this for files it opens itself, but not for
// files beyond standard error that this process has inherited. Its parent may have left
// any file open, and CRIU could not save a program with, for example, one end of another
// process's connection. It may be called from any goroutine.
func WithholdFiles() {
	const first = 3
	_ = unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // impossible on kernels before 5.11
}
