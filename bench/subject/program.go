//go:build linux && amd64

package subject

import (
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
)

// Program is a compiled program that can be started many times.
type Program struct {
	Path    string
	symbols map[string]uint64
	copies  atomic.Int64
}

// Compile builds bench/reference/NAME.c into a directory.
func Compile(ctx context.Context, sources, name, dir string, flags ...string) (*Program, error) {
	return CompileAs(ctx, sources, name, filepath.Join(dir, name), flags...)
}

// CompileAs is Compile with another name for what is built.
func CompileAs(ctx context.Context, sources, name, path string, flags ...string) (*Program, error) {
	args := append([]string{"-O2", "-no-pie", "-pthread", "-o", path, filepath.Join(sources, name+".c")}, flags...)
	if msg, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot compile %s.c: %w\n%s", name, err, msg)
	}
	return read(path)
}

// read reads the symbols of a program; it is loaded where they say, since it is not
// position independent.
func read(path string) (*Program, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("cannot read the symbols of %s: %w", path, err)
	}
	p := &Program{Path: path, symbols: make(map[string]uint64, len(list))}
	for _, s := range list {
		p.symbols[s.Name] = s.Value
	}
	return p, nil
}

// Base is where a program that is not position independent is loaded: offsets in its
// file are counted from there.
const Base = 0x400000

// Entry is where a function begins.
func (p *Program) Entry(function string) uint64 { return p.symbols[function] }

// Return is where a function returns.
func (p *Program) Return(function string) uint64 { return p.symbols[function+"_ret"] }

// Copy is the same program in a file of its own. Uprobes stand in files: in a copy,
// nobody's but those of whom it was made for.
func (p *Program) Copy() (*Program, error) {
	return p.CopyTo(fmt.Sprintf("%s-%d", p.Path, p.copies.Add(1)))
}

// CopyTo is Copy with a name for the file.
func (p *Program) CopyTo(path string) (*Program, error) {
	c := &Program{Path: path, symbols: p.symbols}
	from, err := os.Open(p.Path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenFile(c.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, from)
	if end := to.Close(); err == nil {
		err = end
	}
	return c, err
}
