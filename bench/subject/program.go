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

// CompileAs builds bench/reference/NAME.c into the file at path.
func CompileAs(ctx context.Context, sources, name, path string, flags ...string) (*Program, error) {
	args := append([]string{"-O2", "-no-pie", "-pthread", "-o", path, filepath.Join(sources, name+".c")}, flags...)
	if msg, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot compile %s.c: %w\n%s", name, err, msg)
	}
	return read(path)
}

// read reads the symbols of a program. They are also its addresses in memory, because it
// is not position-independent.
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

// Base is the load address of a program that is not position-independent; file offsets
// are relative to it.
const Base = 0x400000

// Entry returns the address of a function.
func (p *Program) Entry(function string) uint64 { return p.symbols[function] }

// Return returns the address of a function's return instruction.
func (p *Program) Return(function string) uint64 { return p.symbols[function+"_ret"] }

// Copy copies the program to a file of its own. Uprobes belong to files, so a copy has no
// other uprobes.
func (p *Program) Copy() (*Program, error) {
	return p.CopyTo(fmt.Sprintf("%s-%d", p.Path, p.copies.Add(1)))
}

// CopyTo copies the program to a file with a given name.
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
