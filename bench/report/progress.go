//go:build linux

package report

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Progress shows on a terminal what is being measured, in a line that is overwritten.
type Progress struct{ out *os.File }

// NewProgress returns a Progress that is silent if out is not a terminal.
func NewProgress(out *os.File) *Progress {
	if _, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS); err != nil {
		return &Progress{}
	}
	return &Progress{out}
}

// Say replaces the line. A nil or zero Progress is silent.
func (p *Progress) Say(format string, args ...any) {
	if p == nil || p.out == nil {
		return
	}
	const clearLine = "\r\x1b[K"
	fmt.Fprintf(p.out, clearLine+format, args...)
}
