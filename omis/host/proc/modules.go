//go:build linux

package proc

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"

	"mirador/omis"
	"mirador/omis/node"
)

// Modules lists the load modules of a process, the main one first, if its file can be read.
func Modules(p omis.ProcID) ([]node.Module, error) {
	if err := Alive(p); err != nil {
		return nil, err
	}
	maps, err := Maps(p.PID)
	if err != nil {
		return nil, err
	}
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	var modules []node.Module
	for _, image := range maps.images() {
		m, err := module(p.PID, image)
		if blocked := new(BlockedError); errors.As(err, &blocked) {
			return nil, omis.Errorf(omis.OSError, "cannot tell what process %d has loaded: %w", p.PID, err)
		}
		if err != nil {
			continue // the mapped file is not a program, or does not exist any more
		}
		if image.Path == main {
			modules = append([]node.Module{m}, modules...)
		} else {
			modules = append(modules, m)
		}
	}
	return modules, nil
}

// images returns the first mapping of each file that has an executable mapping.
func (ms Mappings) images() []Mapping {
	type file struct{ dev, inode uint64 }
	first := make(map[file]Mapping)
	listed := make(map[file]bool)
	var images []Mapping
	for _, m := range ms {
		f := file{m.Dev, m.Inode}
		if m.Inode == 0 || !strings.HasPrefix(m.Path, "/") {
			continue
		}
		if _, seen := first[f]; !seen || m.Offset == 0 && !listed[f] {
			first[f] = m
		}
		if m.Exec && !listed[f] {
			listed[f] = true
			images = append(images, first[f])
		}
	}
	return images
}

func module(pid int, image Mapping) (node.Module, error) {
	f, err := OpenImage(pid, image)
	if err != nil {
		return node.Module{}, err
	}
	defer f.Close()
	file, err := ReadELF(f)
	if err != nil {
		return node.Module{}, err
	}
	m := node.Module{Path: image.Path, Bias: bias(file, image)}
	for _, s := range file.Progs {
		if s.Type != elf.PT_LOAD {
			continue
		}
		switch {
		case s.Flags&elf.PF_X != 0:
			m.CodeStart, m.CodeLen = s.Vaddr+m.Bias, s.Memsz
		case s.Flags&elf.PF_W != 0:
			m.DataStart, m.DataLen = s.Vaddr+m.Bias, s.Filesz
			m.BSSStart, m.BSSLen = m.DataStart+s.Filesz, s.Memsz-s.Filesz
		}
	}
	return m, nil
}

// bias returns the difference between the address of an image in memory and in its file.
func bias(file *elf.File, image Mapping) uint64 {
	const page = 0x1000
	for _, s := range file.Progs {
		if s.Type == elf.PT_LOAD && s.Off&^(page-1) == image.Offset {
			return image.Start - s.Vaddr&^(page-1)
		}
	}
	return 0
}
