package native

import (
	"debug/elf"
	"io"
	"path/filepath"
	"sync"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// openedCache has the libraries that processes have opened, for as long as these map the same files, and what files
// need.
type openedCache struct {
	mu     sync.Mutex
	opened map[omis.ProcID]openedLibraries
	files  map[fileKey]dependencies
}

type openedLibraries struct {
	files string // as the process had mapped them
	list  []translate.Library
}

type fileKey struct {
	dev, inode uint64
	path       string
}

// dependencies are the name by which others need a file, and the names that it needs.
type dependencies struct {
	name  string
	needs []string
}

// mostFiles limits the number of files in the cache.
const mostFiles = 4096

// Opened lists the libraries that the program of a process can close: those that it has opened itself, with the
// libraries that these need. What the program itself needs stays until it ends.
func (r *Runtime) Opened(pid int) ([]translate.Library, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	files, err := mappedFiles(pid)
	if err != nil {
		return nil, err
	}
	c := &r.opened
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.opened[process]; ok && known.files == files {
		return known.list, nil
	}
	modules, err := r.machine.Modules(process)
	if err != nil || len(modules) == 0 {
		return nil, err
	}
	mapped, err := proc.Maps(pid)
	if err != nil {
		return nil, err
	}
	if c.opened == nil || len(c.opened) >= mostCached {
		c.opened = make(map[omis.ProcID]openedLibraries)
	}
	list := c.canBeClosed(pid, modules, mapped)
	c.opened[process] = openedLibraries{files, list}
	return list, nil
}

// canBeClosed returns the modules that neither the main module nor what it needs needs. The dynamic linker stays, too.
func (c *openedCache) canBeClosed(pid int, modules []node.Module, mapped proc.Mappings) (list []translate.Library) {
	byName, of := make(map[string]int), make([]dependencies, len(modules))
	for i, m := range modules {
		of[i] = c.dependencies(pid, m, mapped)
		byName[filepath.Base(m.Path)] = i
		if of[i].name != "" {
			byName[of[i].name] = i
		}
	}
	stays := make([]bool, len(modules))
	var reach func(i int)
	reach = func(i int) {
		if stays[i] {
			return
		}
		stays[i] = true
		for _, name := range of[i].needs {
			if j, ok := byName[filepath.Base(name)]; ok {
				reach(j)
			}
		}
	}
	reach(0)
	linker, _ := proc.Interpreter(pid)
	for i, m := range modules {
		if at, ok := mapped.At(m.CodeStart); ok && !stays[i] && m.Bias != linker && filepath.IsAbs(m.Path) {
			list = append(list, translate.Library{Path: m.Path, Dev: at.Dev, Inode: at.Inode, Begin: m.CodeStart, End: m.CodeStart + m.CodeLen})
		}
	}
	return list
}

// dependencies reads what a module needs. A file that cannot be read needs nothing.
func (c *openedCache) dependencies(pid int, m node.Module, mapped proc.Mappings) (d dependencies) {
	at, _ := mapped.At(m.CodeStart)
	key := fileKey{at.Dev, at.Inode, m.Path}
	if d, ok := c.files[key]; ok {
		return d
	}
	f, err := mappedBy(pid)(m.Path)
	if err != nil {
		return d
	}
	if closer, ok := f.(io.Closer); ok {
		defer closer.Close()
	}
	if file, err := proc.ReadELF(f); err == nil {
		d.needs, _ = file.ImportedLibraries()
		if names, err := file.DynString(elf.DT_SONAME); err == nil && len(names) > 0 {
			d.name = names[0]
		}
	}
	if c.files == nil || len(c.files) >= mostFiles {
		c.files = make(map[fileKey]dependencies)
	}
	c.files[key] = d
	return d
}
