package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/sir/binary"
)

// inventory caches what processes have loaded, for as long as they map the same files, so that
// thousands of requests about a process read its files only once.
type inventory struct {
	mu     sync.Mutex
	stocks map[omis.ProcID]*stock
}

// stock contains what a process had loaded while it had these files mapped.
type stock struct {
	files   string
	modules []translate.Module
	images  []*binary.Image // one for each module; nil if it could not be read
}

// mostStocks limits the number of cached stocks, including those of processes that have ended. A
// stock keeps its images in memory.
const mostStocks = 64

// find returns the cached stock of a process, or nil if there is none or a file has changed.
func (v *inventory) find(process omis.ProcID, files string) *stock {
	v.mu.Lock()
	s, known := v.stocks[process]
	v.mu.Unlock()
	changed := func(image *binary.Image) bool { return image == nil || !image.Current() }
	if !known || s.files != files || slices.ContainsFunc(s.images, changed) {
		return nil
	}
	return s
}

func (v *inventory) enter(process omis.ProcID, s *stock) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stocks == nil || len(v.stocks) >= mostStocks {
		v.stocks = make(map[omis.ProcID]*stock)
	}
	v.stocks[process] = s
}

// mappedFiles returns the lines of a process's map that name files. The other lines change whenever
// the program allocates memory.
func mappedFiles(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", unmapped(pid, err)
	}
	var files strings.Builder
	for line := range bytes.Lines(text) {
		if bytes.IndexByte(line, '/') >= 0 {
			files.Write(line)
		}
	}
	return files.String(), nil
}

// unmapped explains why a process's map could not be read.
func unmapped(pid int, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
	case errors.Is(err, fs.ErrPermission):
		return omis.Errorf(omis.NoPermission, "cannot tell what process %d has loaded: the kernel does not let us read its map, which takes the right to trace it", pid)
	}
	return omis.Errorf(omis.OSError, "cannot tell what process %d has loaded: %w", pid, err)
}
