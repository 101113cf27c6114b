//go:build linux

package report

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Progress tells on a terminal what is being measured, in a line that goes away.
type Progress struct{ out *os.File }

// NewProgress says nothing where nobody looks.
func NewProgress(out *os.File) *Progress {
	if _, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS); err != nil {
		return &Progress{}
	}
	return &Progress{out}
}

// Say replaces the line. Nil and the zero Progress are silent.
func (p *Progress) Say(format string, args ...any) {
	if p == nil || p.out == nil {
		return
	}
	const clearLine = "\r\x1b[K"
	fmt.Fprintf(p.out, clearLine+format, args...)
}
