//go:build linux

package heap

import (
	"strings"
	"sync"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// Reader reads how much memory processes have allocated. It remembers where their tables are.
type Reader struct {
	// owns reports whether the runtime of a process has an allocator of its own.
	owns func(omis.ProcID) bool

	mu     sync.Mutex
	tables map[omis.ProcID]*tables // nil: the process does not use this allocator
}

// mostRemembered limits the processes whose tables are remembered.
const mostRemembered = 1 << 12

// NewReader returns a Reader. owns reports whether the runtime of a process has an allocator of
// its own, beside which glibc's says little.
func NewReader(owns func(omis.ProcID) bool) *Reader {
	return &Reader{owns: owns, tables: make(map[omis.ProcID]*tables)}
}

// Used returns the bytes that a process has allocated and not freed, with the headers of the
// allocator. ok is false if the process does not use glibc's allocator, or if its tables make
// no sense.
func (r *Reader) Used(p omis.ProcID) (bytes int64, ok bool) {
	r.mu.Lock()
	t, known := r.tables[p]
	r.mu.Unlock()
	if t != nil {
		if bytes, ok = t.used(memory(p.PID)); ok {
			return bytes, true
		}
	}
	if known && t == nil {
		return 0, false
	}
	// The process may have executed another program since.
	own := r.owns(p)
	if t = nil; !own {
		t = find(p.PID)
	}
	if t != nil {
		bytes, ok = t.used(memory(p.PID))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tables) >= mostRemembered {
		clear(r.tables)
	}
	if ok || own || t == nil && others(p.PID) {
		r.tables[p] = t
	}
	return bytes, ok
}

// replacements are parts of the names of libraries with allocators that replace glibc's. What
// a process has allocated from glibc's is then only a small part.
var replacements = []string{"jemalloc", "tcmalloc", "mimalloc", "libasan", "libtsan", "libhwasan", "snmalloc", "libhoard"}

// replaced reports whether a mapped library replaces the allocator.
func replaced(maps proc.Mappings) bool {
	for i := range maps {
		for _, part := range replacements {
			if maps[i].Exec && strings.Contains(maps[i].Path, part) {
				return true
			}
		}
	}
	return false
}

// others reports whether the process uses another allocator. A process without tables may
// not have allocated anything yet.
func others(pid int) bool {
	maps, err := proc.Maps(pid)
	return err == nil && replaced(maps)
}
