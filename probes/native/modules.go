package native

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/sir/binary"
)

// moduleCache caches the modules of processes, for as long as these map the same files, so that
// thousands of requests about a process read its files only once.
type moduleCache struct {
	mu     sync.Mutex
	loaded map[moduleKey]*loadedModules
}

// moduleKey identifies the modules of a process with the name of a program; "" means all.
type moduleKey struct {
	process omis.ProcID
	program string
}

// loadedModules contains what a process had loaded while it had these files mapped.
type loadedModules struct {
	files   string
	modules []translate.Module
	images  []*binary.Image // one for each module; nil if it could not be read
}

func (s *loadedModules) add(m translate.Module, image *binary.Image) {
	s.modules, s.images = append(s.modules, m), append(s.images, image)
}

// mostCached limits the number of cached processes, including some that have ended. A cached process
// keeps the images of its files in memory.
const mostCached = 64

// find returns the cached modules of a process, or nil if there are none or a file has changed.
func (v *moduleCache) find(key moduleKey, files string) *loadedModules {
	v.mu.Lock()
	s, known := v.loaded[key]
	v.mu.Unlock()
	changed := func(image *binary.Image) bool { return image == nil || !image.Current() }
	if !known || s.files != files || slices.ContainsFunc(s.images, changed) {
		return nil
	}
	return s
}

// enter caches the modules of a process, and forgets those of ended processes.
func (v *moduleCache) enter(key moduleKey, s *loadedModules) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.loaded, func(of moduleKey, _ *loadedModules) bool {
		start, err := proc.ThreadStart(of.process.PID, of.process.PID)
		return err != nil || start != of.process.Start
	})
	if v.loaded == nil || len(v.loaded) >= mostCached {
		v.loaded = make(map[moduleKey]*loadedModules)
	}
	v.loaded[key] = s
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
