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

// debugFiles is where debug information of programs is looked for: where distributions put
// it, and at the servers that DEBUGINFOD_URLS names.
func debugFiles() binary.DebugFiles {
	return debuginfod.New(binary.DefaultDebugDir, os.Getenv)
}

// programs knows what the programs of live processes are made of. It may be used
// by many goroutines; each file is read once.
type programs struct {
	node  node.Node
	cache *binary.Cache
	known inventory
}

func newPrograms(node node.Node) *programs {
	return &programs{node: node, cache: binary.NewCache(binary.DefaultCacheBytes, debugFiles())}
}

// Modules lists what a process has loaded, with its structure. A library that
// cannot be read has none; its functions cannot be measured, the others can. The list
// belongs to all who ask.
func (p *programs) Modules(ctx context.Context, pid int) ([]translate.Module, error) {
	s, err := p.stock(ctx, pid)
	if err != nil {
		return nil, err
	}
	return s.modules, nil
}

// stock is modules with the images of the files. The units of the modules have no lines: to
// find lines means to read all debug information, which translation does not need.
func (p *programs) stock(ctx context.Context, pid int) (*stock, error) {
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
			return nil, err // nobody waits for the others any more
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
		modules[i].Program, modules[i].Index, modules[i].Exits = &program, image.Index, image.Exits
		modules[i].Entered = image.Entered
		images[i] = image
	}
	s := &stock{files, modules, images}
	if after, err := mappedFiles(pid); err == nil && after == files { // else they are of neither
		p.known.enter(process, s)
	}
	return s, nil
}

// loaded does not have the node identify the process: whose it is was noted when it was
// attached.
func (p *programs) loaded(pid int) ([]node.Module, error) {
	process, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	return p.node.Modules(process)
}

// Resolver puts addresses of a process into words.
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
		return symbols.Stack([]uint64{0, pc})[1].String() // a return address: not the innermost frame
	}, nil
}

// goroutines lists those of a process, none if it has ended.
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

// structure makes the document of some of the loaded files, of all if none is
// named, and a tag of what it was made from. Files that are configured are read from the disk,
// others through the processes that have loaded them.
func (p *programs) structure(ctx context.Context, loaded []*stock, files []string, configured func(file string) bool) (*sir.Structure, string, error) {
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
			// Only a process says that there is such a file, which may be another one here.
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

// tag depends on which programs a structure holds; a program without a build id
// counts by what it has.
func tag(s *sir.Structure) string {
	hash := sha256.New()
	for _, p := range s.Programs {
		fmt.Fprintf(hash, "%s\n%s\n%d\n", p.Path, p.BuildID, len(p.Units))
		if p.BuildID == "" {
			for _, u := range p.Units {
				fmt.Fprintf(hash, "%s %x %x\n", u.ID, u.Entry, u.Size)
			}
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Name is what applications are named after, "" if it cannot be known.
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
