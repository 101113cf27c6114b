//go:build linux && amd64

package library

import (
	"encoding/binary"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// Symbols by which debuggers recognise a dynamic linker (link.h).
const (
	noticeName = "_dl_debug_state"
	stateName  = "_r_debug"
)

// Linker is the dynamic linker of a process.
type Linker struct {
	// Notice is the address of an empty function. The linker calls it after it has mapped
	// modules, before their code runs, and after it has unmapped some.
	Notice uint64

	// Loading reports that the linker is loading modules at present, or has not started
	// yet.
	Loading bool
}

// Linker finds the dynamic linker of a process; a statically linked program has none.
func (c *Catalog) Linker(p omis.ProcID) (l Linker, found bool) {
	modules, err := c.modules(p)
	if err != nil {
		return Linker{}, false
	}
	return linker(p.PID, modules)
}

func linker(pid int, modules []module) (l Linker, found bool) {
	for _, m := range modules {
		if at := m.functions[noticeName]; len(at) == 1 {
			return Linker{Notice: at[0].value + m.Bias, Loading: m.isLoading(pid)}, true
		}
	}
	return Linker{}, false
}

// isLoading reads r_version and r_state of the linker's struct r_debug.
func (m module) isLoading(pid int) bool {
	const (
		stateOffset  = 24
		rtConsistent = 0
	)
	var debug [stateOffset + 4]byte
	if m.state == 0 {
		return false
	}
	if _, err := proc.ReadMemory(pid, m.state+m.Bias, debug[:]); err != nil {
		return false
	}
	version, state := binary.LittleEndian.Uint32(debug[:]), binary.LittleEndian.Uint32(debug[stateOffset:])
	return version == 0 || state != rtConsistent
}
