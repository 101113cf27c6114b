//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"

	"mirador/omis/host/proc"
)

// code is a copy of the executable mappings of files in a process.
type code []stretch

type stretch struct {
	path  string
	start uint64
	bytes []byte
}

// readCode copies the code of a process.
func readCode(pid int) (code, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil, err
	}
	var c code
	for _, m := range maps {
		if m.Exec && m.Path != "" && m.Path[0] == '/' {
			c = append(c, stretch{m.Path, m.Start, make([]byte, m.End-m.Start)})
		}
	}
	return c, c.each(pid, func(s stretch, is []byte) error {
		copy(s.bytes, is)
		return nil
	})
}

// unchanged returns an error with the first bytes of a process that differ from the copy.
func (c code) unchanged(pid int) error {
	return c.each(pid, func(s stretch, is []byte) error {
		if bytes.Equal(s.bytes, is) {
			return nil
		}
		i := 0
		for s.bytes[i] == is[i] {
			i++
		}
		end := min(i+16, len(is))
		return fmt.Errorf("its code at %#x (%s%+#x) is % x, and was % x", s.start+uint64(i), s.path, i, is[i:end], s.bytes[i:end])
	})
}

// each reads the present content of each stretch.
func (c code) each(pid int, do func(stretch, []byte) error) error {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer memory.Close()
	for _, s := range c {
		is := make([]byte, len(s.bytes))
		if _, err := memory.ReadAt(is, int64(s.start)); err != nil {
			return fmt.Errorf("%s at %#x: %w", s.path, s.start, err)
		}
		if err := do(s, is); err != nil {
			return err
		}
	}
	return nil
}
