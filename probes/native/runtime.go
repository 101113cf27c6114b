package native

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/sir"
	"mirador/sir/binary"
)

// Runtime reads the programs and libraries of live processes.
type Runtime struct {
	machine program.Machine
	cache   *binary.Cache
	known   moduleCache
	opened  openedCache
}

// New returns a runtime for the processes of a machine. debug is where it searches for debug
// information that programs lack.
func New(m program.Machine, debug binary.DebugFiles) *Runtime {
	return &Runtime{machine: m, cache: binary.NewCache(binary.DefaultCacheBytes, debug)}
}

// mappedBy opens the files that a process has mapped, in a bounded time.
func mappedBy(pid int) binary.Opener {
	open := binary.FromProcess(pid)
	return func(path string) (binary.File, error) {
		return proc.InTime(pid, path, func() (binary.File, error) {
			opened, err := open(path)
			if f, ok := opened.(*os.File); ok && err == nil {
				return proc.Unblocked(f)
			}
			return opened, err
		})
	}
}

// Modules lists what a process has loaded, with its structure: all, or the modules with the name
// of a program. A library that cannot be read has no
// structure; only its own functions cannot be measured. Callers share the list and must not change
// it.
func (r *Runtime) Modules(ctx context.Context, pid int, program string) ([]translate.Module, error) {
	s, err := r.modules(ctx, pid, program)
	if err != nil {
		return nil, err
	}
	return s.modules, nil
}

// modules returns the modules of a process with the images of their files. The units have no lines,
// because finding lines requires all debug information to be read, and translation does not need
// lines.
func (r *Runtime) modules(ctx context.Context, pid int, program string) (*loadedModules, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	files, err := mappedFiles(pid)
	if err != nil {
		return nil, err
	}
	if known := r.known.find(moduleKey{process, program}, files); known != nil {
		return known, nil
	}
	loaded, err := r.machine.Modules(process)
	if err != nil {
		return nil, err
	}
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // it is not among the modules if its file is damaged
	open := mappedBy(pid)
	s := &loadedModules{files: files}
	for i, m := range loaded {
		if err := ctx.Err(); err != nil {
			return nil, err // no caller waits for the other images
		}
		name := ""
		if i == 0 && m.Path == main {
			name = proc.TypedName(pid)
		}
		if program == "" || program == cmp.Or(name, binary.NameOf(m.Path)) {
			s.add(r.open(m, name, open))
		}
	}
	if after, err := mappedFiles(pid); err == nil && after == files { // otherwise the modules belong to neither map
		r.known.enter(moduleKey{process, program}, s)
	}
	return s, nil
}

// open reads the structure of a module. The image is nil if it cannot be read.
func (r *Runtime) open(m node.Module, name string, open binary.Opener) (translate.Module, *binary.Image) {
	module := translate.Module{Path: m.Path, Bias: m.Bias}
	image, err := r.cache.OpenAs(m.Path, name, open)
	if err != nil {
		return module, nil
	}
	module.Units, module.Locator, module.Inside = image.Units(), image, image.Inside
	module.Line, module.Inlined, module.Whole, module.Copies = image.Line, image.Inlined, image.Whole, image.Copies
	module.Branch, module.Declared = image.Branch, image.Declared
	return module, image
}

// loaded identifies the process by package proc. The node's Identify would also record the user of the
// process, which was done when the process was attached.
func (r *Runtime) loaded(pid int) ([]node.Module, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	return r.machine.Modules(process)
}

// Resolver returns a function that describes addresses of a process as text.
func (r *Runtime) Resolver(ctx context.Context, pid int) (func(pc uint64, first bool) string, error) {
	loaded, err := r.loaded(pid)
	if err != nil {
		return nil, err
	}
	modules := make([]binary.Module, len(loaded))
	for i, m := range loaded {
		modules[i] = binary.Module{Path: m.Path, Bias: m.Bias, Start: m.CodeStart, Len: m.CodeLen}
	}
	symbols := r.cache.Symbols(ctx, modules, mappedBy(pid))
	return func(pc uint64, first bool) string {
		if first {
			return symbols.Resolve(pc).String()
		}
		return symbols.Stack([]uint64{0, pc})[1].String() // pc is a return address, so it must not be the innermost frame
	}, nil
}

// Start describes the place at which a new process, which was not continued yet, will have mapped its
// libraries.
func (r *Runtime) Start(pid int) (node.Start, error) {
	finder := r.machine.Capabilities().StartFinder
	process, err := proc.Identify(pid)
	switch {
	case err != nil:
		return node.Start{}, err
	case finder == nil:
		return node.Start{}, omis.Errorf(omis.UnsupportedService, "the monitor of this node cannot find it out")
	}
	return finder.Start(process)
}

// Goroutines lists the goroutines of a process, each with up to depth frames. It returns none if
// the program is not in Go, or the process has ended.
func (r *Runtime) Goroutines(ctx context.Context, pid, depth int) ([]node.GoroutineInfo, error) {
	lister := r.machine.Capabilities().GoroutineLister
	process, err := proc.Identify(pid)
	if err != nil || lister == nil {
		return nil, nil
	}
	list, err := lister.Goroutines(ctx, process, depth)
	if err != nil && proc.Alive(process) != nil {
		return nil, nil
	}
	return list, err
}

// Files returns the files that processes have loaded.
func (r *Runtime) Files(ctx context.Context, pids []int) ([]string, error) {
	loaded, err := r.modulesOf(ctx, pids)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, of := range loaded {
		for _, module := range of.modules {
			if !slices.Contains(paths, module.Path) {
				paths = append(paths, module.Path)
			}
		}
	}
	return paths, nil
}

func (r *Runtime) modulesOf(ctx context.Context, pids []int) ([]*loadedModules, error) {
	var all []*loadedModules
	for _, pid := range pids {
		s, err := r.modules(ctx, pid, "")
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Structure returns the document about the named files, or about all files that the processes
// have loaded if none is named, and a tag that changes with the document's content. It reads
// configured files from the disk, and other files through the processes that have loaded them.
func (r *Runtime) Structure(ctx context.Context, pids []int, files []string, configured func(file string) bool) (*sir.Structure, string, error) {
	loaded, err := r.modulesOf(ctx, pids)
	if err != nil {
		return nil, "", err
	}
	s := &sir.Structure{}
	has := func(file string) bool {
		return slices.ContainsFunc(s.Programs, func(q sir.Program) bool { return q.Path == file })
	}
	for _, of := range loaded {
		for i, m := range of.modules {
			wanted := len(files) == 0 || slices.Contains(files, m.Path)
			if of.images[i] == nil || !wanted || has(m.Path) {
				continue
			}
			program, err := of.images[i].Program(ctx)
			if err != nil {
				return nil, "", err
			}
			s.Programs = append(s.Programs, program)
		}
	}
	for _, file := range files {
		if has(file) {
			continue
		}
		if !configured(file) {
			// Only a process names this file, so the path may lead to another file here.
			return nil, "", unreadable("cannot read the structure of %s as the application has it mapped", file)
		}
		image, err := r.cache.Open(file, binary.FromDisk)
		if err != nil {
			return nil, "", unreadable("cannot read the structure of %s: %v", file, err)
		}
		program, err := image.Program(ctx)
		if err != nil {
			return nil, "", err
		}
		s.Programs = append(s.Programs, program)
	}
	return s, tag(s), nil
}

// Inside returns a structure that Structure has returned, or a part of it, with the regions inside
// its functions.
func (r *Runtime) Inside(ctx context.Context, pids []int, s *sir.Structure) (*sir.Structure, error) {
	images, err := r.Images(ctx, pids, s)
	if err != nil {
		return nil, err
	}
	deep := &sir.Structure{Programs: slices.Clone(s.Programs)}
	for i, p := range deep.Programs {
		if deep.Programs[i], err = images[i].WithInside(ctx, p); err != nil {
			return nil, err
		}
	}
	return deep, nil
}

// Images returns the images of the programs of a structure.
func (r *Runtime) Images(ctx context.Context, pids []int, s *sir.Structure) ([]*binary.Image, error) {
	loaded, err := r.modulesOf(ctx, pids)
	if err != nil {
		return nil, err
	}
	images := make([]*binary.Image, len(s.Programs))
	for i, p := range s.Programs {
		if images[i], err = r.image(loaded, p.Path); err != nil {
			return nil, unreadable("cannot read the structure of %s: %v", p.Path, err)
		}
	}
	return images, nil
}

// image returns the image of a file as a process has loaded it, or else as it is on the disk.
func (r *Runtime) image(loaded []*loadedModules, path string) (*binary.Image, error) {
	for _, of := range loaded {
		for i, m := range of.modules {
			if m.Path == path && of.images[i] != nil {
				return of.images[i], nil
			}
		}
	}
	return r.cache.Open(path, binary.FromDisk)
}

func unreadable(format string, args ...any) error {
	return translate.Errorf(translate.CannotBeDone, mir.Position{}, format, args...)
}

// tag depends on the programs of a structure: on the build id, or on the units if a program has no build id.
func tag(s *sir.Structure) string {
	hash := sha256.New()
	for _, p := range s.Programs {
		fmt.Fprintf(hash, "%s\n%s\n%d\n", p.Path, p.BuildID, len(p.Regions))
		if p.BuildID == "" {
			for u := range p.All() {
				fmt.Fprintf(hash, "%s %x %x\n", u.ID, u.Entry, u.Size)
			}
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Weavings returns the ids of the weavings whose sources programs were built from: a file, or what a process executes,
// with its libraries, if pid is not 0.
func (r *Runtime) Weavings(path string, pid int) (ids []string) {
	if pid == 0 {
		if image, err := r.cache.Open(path, binary.FromDisk); err == nil && image.Units().Weaving() != "" {
			return []string{image.Units().Weaving()}
		}
		return nil
	}
	modules, err := r.Modules(context.Background(), pid, "")
	if err != nil {
		return nil
	}
	for _, m := range modules {
		if m.Units != nil && m.Units.Weaving() != "" {
			ids = append(ids, m.Units.Weaving())
		}
	}
	return ids
}

// Name returns the name of an application of this process, or "" if it is unknown.
func (*Runtime) Name(pid int) string {
	if name := proc.TypedName(pid); name != "" {
		return name
	}
	dir := "/proc/" + strconv.Itoa(pid)
	if path, err := os.Readlink(dir + "/exe"); err == nil && path != "" {
		return filepath.Base(path)
	}
	comm, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(comm))
}
