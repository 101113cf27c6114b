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

// inventory remembers what processes have loaded, while they have the same files mapped:
// thousands of requests about one process need not look into its files each time.
type inventory struct {
	mu     sync.Mutex
	stocks map[omis.ProcID]*stock
}

// stock is what a process had loaded when it had these files mapped.
type stock struct {
	files   string
	modules []translate.Module
	images  []*binary.Image // by modules; nil where one could not be read
}

// mostStocks bounds what is remembered, of processes that have ended as well. Images are
// kept from being forgotten by it.
const mostStocks = 64

// find returns what is known of a process, nil if that is nothing, or not true any more.
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

// mappedFiles are the lines of a process' map that are about files. The others come and
// go while a program allocates memory.
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

// unmapped is why a process' map could not be read.
func unmapped(pid int, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
	case errors.Is(err, fs.ErrPermission):
		return omis.Errorf(omis.NoPermission, "cannot tell what process %d has loaded: the kernel does not let us read its map, which takes the right to trace it", pid)
	}
	return omis.Errorf(omis.OSError, "cannot tell what process %d has loaded: %s", pid, err.Error())
}
