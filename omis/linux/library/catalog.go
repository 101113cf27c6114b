//go:build linux && amd64

package library

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
	"mirador/omis/node"
)

// mostImages limits the number of cached files; if it is exceeded, the cache is cleared.
const mostImages = 512

// Catalog contains the exported functions of programs and libraries, whose files it reads
// once each, and the prototypes given to it.
type Catalog struct {
	mu         sync.Mutex
	images     map[identity]*image
	prototypes map[string]*prototype.Func
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog {
	return &Catalog{images: make(map[identity]*image), prototypes: make(map[string]*prototype.Func)}
}

// Describe adds the prototypes of files; a later prototype of a function replaces an
// earlier one. If a file has errors, Describe adds nothing.
func (c *Catalog) Describe(files ...prototype.File) error {
	var all []prototype.Func
	var errs []error
	for _, file := range files {
		functions, err := file.Parse()
		all, errs = append(all, functions...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return omis.Errorf(omis.ParameterError, "cannot read the prototypes:\n%w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range all {
		c.prototypes[f.Name] = &f
	}
	return nil
}

// module is a mapped file of a process.
type module struct {
	node.Module
	*image
	program bool
}

// NotLoaded is the error of Find for a function that is in none of the modules but may be
// in one that the process will load.
type NotLoaded struct{ Name string }

func (e *NotLoaded) Error() string { return e.Name + " is not loaded yet" }

// Find returns the functions of a process with a name: there may be several, in several
// modules or versions. "memcpy@GLIBC_2.14" selects one version, "libm.so.6:sin" one
// module, "std::terminate" all C++ functions with this name, whatever their parameters
// are.
func (c *Catalog) Find(p omis.ProcID, text string) ([]*Function, error) {
	modules, err := c.modules(p)
	if err != nil {
		return nil, err
	}
	n := parseName(text)
	named := n.among(modules)
	found, unresolved := c.find(p.PID, n, named, modules)
	if len(found) == 0 && !unresolved {
		for _, n.function = range mangledNames(named, n.function) {
			more, _ := c.find(p.PID, n, named, modules)
			found = append(found, more...)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case unresolved:
		return nil, omis.Errorf(omis.UnsupportedService, "process %d has several implementations of %s, and it is unknown which one it will call", p.PID, text)
	}
	return nil, notFound(p.PID, n, text, len(named), modules)
}

// notFound distinguishes functions that may be loaded later from mistakes.
func notFound(pid int, n name, text string, named int, modules []module) error {
	l, dynamic := linker(pid, modules)
	switch {
	case dynamic && (l.Loading || named == 0):
		return &NotLoaded{text}
	case named == 0:
		return omis.Errorf(omis.ParameterError, "process %d has no module %s and will load none: it was linked statically", pid, n.module)
	case dynamic && n.module == "":
		return omis.Errorf(omis.ParameterError, "process %d has no exported function %s in any of its %d modules; name a function of a module that it will load later with the module, as libNAME.so:%s",
			pid, text, len(modules), text)
	}
	return omis.Errorf(omis.ParameterError, "process %d has no exported function %s", pid, text)
}

// find finds the functions with a linker's name in the given modules; unresolved reports
// that it found no implementation of one of them.
func (c *Catalog) find(pid int, n name, named, modules []module) (found []*Function, unresolved bool) {
	for _, m := range named {
		for _, s := range m.functions[n.function] {
			if n.version != "" && s.version != n.version {
				continue
			}
			addrs := m.starts(pid, n.function, s, modules)
			unresolved = unresolved || len(addrs) == 0
			for _, addr := range addrs {
				if !slices.ContainsFunc(found, func(f *Function) bool { return f.Addr == addr }) {
					found = append(found, c.function(pid, m, n.function, s, addr))
				}
			}
		}
	}
	return found, unresolved
}

// longestName limits the names that a symbol can stand for, to 2 to this power of bytes: a few
// hundred bytes can stand for gigabytes.
const longestName = 11

// mangledNames returns the mangled names of C++ functions with a name in the source.
func mangledNames(modules []module, name string) (names []string) {
	for _, m := range modules {
		for mangled := range m.functions {
			if strings.HasPrefix(mangled, "_Z") && !slices.Contains(names, mangled) && demangle.Filter(mangled, demangle.NoParams, demangle.MaxLength(longestName)) == name {
				names = append(names, mangled)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (c *Catalog) function(pid int, m module, name string, s symbol, addr uint64) *Function {
	f := &Function{
		Name: name, Version: s.version, Module: m.Path, Program: m.program, Addr: addr,
		Own: []Range{{m.CodeStart, m.CodeStart + m.CodeLen}},
	}
	c.mu.Lock()
	f.Proto = c.prototypes[name]
	c.mu.Unlock()
	if f.Proto == nil {
		f.Proto = m.typed(pid, name, addr-m.Bias)
	}
	if f.Proto == nil {
		f.Proto = prototype.Untyped(name)
	}
	return f
}

// modules returns the modules of a process whose files can be read.
func (c *Catalog) modules(p omis.ProcID) ([]module, error) {
	list, err := proc.Modules(p)
	if err != nil {
		return nil, err
	}
	files, err := proc.FilesOf(p.PID)
	if err != nil {
		return nil, err
	}
	var modules []module
	for i, m := range list {
		if im, err := c.image(files, m.Path, i == 0); err == nil {
			modules = append(modules, module{m, im, i == 0})
		}
	}
	return modules, nil
}

// identity identifies a version of a file.
type identity struct {
	dev, inode  uint64
	size, mtime int64
}

func (c *Catalog) image(files proc.Files, path string, main bool) (*image, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, err
	}
	id := identity{st.Dev, st.Ino, st.Size, st.Mtim.Nano()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if im, ok := c.images[id]; ok {
		return im, nil
	}
	im, err := readImage(file, path, main)
	if err != nil {
		return nil, err
	}
	if len(c.images) >= mostImages {
		clear(c.images)
	}
	c.images[id] = im
	return im, nil
}
