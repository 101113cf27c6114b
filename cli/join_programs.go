package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gateway "mirador/http"
	"mirador/mir/translate"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/sir"
	"mirador/sir/binary"
	"mirador/sir/debuginfod"
)

// debugFiles says where to look for debug information of programs: in the directories of
// distributions, and at the servers that DEBUGINFOD_URLS names.
func debugFiles() binary.DebugFiles {
	return debuginfod.New(binary.DefaultDebugDir, os.Getenv)
}

// programs reads the programs and libraries of live processes. It may be used by many goroutines,
// and reads each file once.
type programs struct {
	node  node.Node
	cache *binary.Cache
	known moduleCache
}

func newPrograms(node node.Node) *programs {
	return &programs{node: node, cache: binary.NewCache(binary.DefaultCacheBytes, debugFiles())}
}

// Modules lists what a process has loaded, with its structure. A library that cannot be read has no
// structure; only its own functions cannot be measured. Callers share the list and must not change
// it.
func (p *programs) Modules(ctx context.Context, pid int) ([]translate.Module, error) {
	s, err := p.modules(ctx, pid)
	if err != nil {
		return nil, err
	}
	return s.modules, nil
}

// modules returns the modules of a process with the images of their files. The units have no lines,
// because finding lines requires all debug information to be read, and translation does not need
// lines.
func (p *programs) modules(ctx context.Context, pid int) (*loadedModules, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	files, err := mappedFiles(pid)
	if err != nil {
		return nil, err
	}
	if known := p.known.find(process, files); known != nil {
		return known, nil
	}
	loaded, err := p.node.Modules(process)
	if err != nil {
		return nil, err
	}
	open := binary.FromProcess(pid)
	modules, images := make([]translate.Module, len(loaded)), make([]*binary.Image, len(loaded))
	for i, m := range loaded {
		if err := ctx.Err(); err != nil {
			return nil, err // no caller waits for the other images
		}
		modules[i] = translate.Module{Path: m.Path, Bias: m.Bias}
		name := ""
		if i == 0 {
			name = proc.TypedName(pid)
		}
		image, err := p.cache.OpenAs(m.Path, name, open)
		if err != nil {
			continue
		}
		program := image.Functions()
		modules[i].Program, modules[i].Index, modules[i].Locator = &program, image.Index, image
		images[i] = image
	}
	s := &loadedModules{files, modules, images}
	if after, err := mappedFiles(pid); err == nil && after == files { // otherwise the modules belong to neither map
		p.known.enter(process, s)
	}
	return s, nil
}

// loaded identifies the process itself, not by the node: the process's owner was recorded when it was attached.
func (p *programs) loaded(pid int) ([]node.Module, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	return p.node.Modules(process)
}

// Resolver returns a function that describes addresses of a process as text.
func (p *programs) Resolver(ctx context.Context, pid int) (func(pc uint64, first bool) string, error) {
	loaded, err := p.loaded(pid)
	if err != nil {
		return nil, err
	}
	modules := make([]binary.Module, len(loaded))
	for i, m := range loaded {
		modules[i] = binary.Module{Path: m.Path, Bias: m.Bias, Start: m.CodeStart, Len: m.CodeLen}
	}
	symbols := p.cache.Symbols(ctx, modules, binary.FromProcess(pid))
	return func(pc uint64, first bool) string {
		if first {
			return symbols.Resolve(pc).String()
		}
		return symbols.Stack([]uint64{0, pc})[1].String() // pc is a return address, so it must not be the innermost frame
	}, nil
}

// goroutines lists the goroutines of a process, none if the process has ended.
func (b *backend) goroutines(ctx context.Context, pid, depth int) ([]node.GoroutineInfo, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, nil
	}
	list, err := b.monitor.Linux.Goroutines(ctx, process, depth)
	if err != nil && proc.Alive(process) != nil {
		return nil, nil
	}
	return list, err
}

// structure returns the document about the named files, or about all loaded files if none is named,
// and a tag that changes with the document's content. It reads configured files from the disk, and
// other files through the processes that have loaded them.
func (p *programs) structure(ctx context.Context, loaded []*loadedModules, files []string, configured func(file string) bool) (*sir.Structure, string, error) {
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
			return nil, "", gateway.NewFault(http.StatusUnprocessableEntity, fmt.Sprintf("cannot read the structure of %s as the application has it mapped", file))
		}
		image, err := p.cache.Open(file, binary.FromDisk)
		if err != nil {
			return nil, "", gateway.NewFault(http.StatusUnprocessableEntity, fmt.Sprintf("cannot read the structure of %s: %v", file, err))
		}
		program, err := image.Program(ctx)
		if err != nil {
			return nil, "", err
		}
		s.Programs = append(s.Programs, program)
	}
	return s, tag(s), nil
}

// tag depends on the programs of a structure: on the build id, or on the units if a program has no build id.
func tag(s *sir.Structure) string {
	hash := sha256.New()
	for _, p := range s.Programs {
		fmt.Fprintf(hash, "%s\n%s\n%d\n", p.Path, p.BuildID, len(p.Regions))
		if p.BuildID == "" {
			for _, u := range p.Regions {
				fmt.Fprintf(hash, "%s %x %x\n", u.ID, u.Entry, u.Size)
			}
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Name returns the name of an application of this process, or "" if it is unknown.
func (*programs) Name(pid int) string {
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
