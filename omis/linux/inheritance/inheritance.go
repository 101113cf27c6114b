//go:build linux

// Package inheritance is about the files that this process was started with. It
// keeps no state; its function may be called from any goroutine.
package inheritance

import (
	"math"

	"golang.org/x/sys/unix"
)

// Withhold keeps from programs that this process starts from now on all files but
// those that are meant for them. Go does so with what it opens itself, not with
// what this process has inherited beyond standard error. Whoever started it may
// have left anything open, and a program with such a legacy, one end of somebody
// else's connection, say, could not be saved.
func Withhold() {
	const first = 3
	_ = unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // an older kernel does without
}
