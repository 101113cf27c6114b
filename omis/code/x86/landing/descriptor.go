//go:build linux && amd64

package landing

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"mirador/omis/host/proc"
)

// Scheduler describes how the runtime of a Go program keeps its goroutines, according to
// the debug information: the layout differs between versions of Go.
type Scheduler struct {
	Goroutines        // the list of all descriptors
	Reasons    uint64 // an array of strings: why goroutines wait; 0: not known
	G          int32  // see Runtime.G

	// Members of a descriptor (runtime.g), by their offsets.
	ID, Status, Reason, Thread, SP, PC, BP, CallSP, CallPC, CallBP uint64
	// Size is the size of a descriptor, as far as these members.
	Size uint64
	// TID is the offset of the thread's number in what Thread leads to (runtime.m).
	TID uint64
}

// Limits for the debug information of a program, uncompressed.
const (
	debugRatio, leastDebug, mostDebug = 20, 16 << 20, 512 << 20
	mostEntries                       = 4 << 20 // of the runtime's own part of it
)

// At returns the scheduler of a program that is loaded so many bytes above the addresses in
// its file.
func (s *Scheduler) At(bias uint64) Scheduler {
	at := *s
	at.List, at.Count = s.List+bias, s.Count+bias
	if s.Reasons != 0 {
		at.Reasons += bias
	}
	return at
}

var errNoDebug = errors.New("the program has no debug information, which tells how its runtime keeps goroutines: build it without -ldflags=-w and -s")

// readScheduler reads the file of a Go program.
func readScheduler(file *elf.File, g int32) (s *Scheduler, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("malformed debug information: %v", p)
		}
	}()
	s = &Scheduler{G: g}
	static, _ := file.Symbols() // a stripped file has none
	for _, sym := range static {
		switch sym.Name {
		case "runtime.allgptr":
			s.List = sym.Value
		case "runtime.allglen":
			s.Count = sym.Value
		case "runtime.waitReasonStrings":
			s.Reasons = sym.Value
		}
	}
	if s.List == 0 || s.Count == 0 {
		return nil, errNoDebug
	}
	types, err := readTypes(file, "runtime.g", "runtime.m", "runtime.gobuf")
	if err != nil {
		return nil, err
	}
	return s, s.fill(types)
}

// fill takes the offsets from the members of types.
func (s *Scheduler) fill(types map[string]map[string]uint64) error {
	g, saved := types["runtime.g"], types["runtime.gobuf"]
	sched := g["sched"]
	for _, m := range []struct {
		to     *uint64
		in     map[string]uint64
		member string
		base   uint64
	}{
		{&s.ID, g, "goid", 0}, {&s.Status, g, "atomicstatus", 0}, {&s.Reason, g, "waitreason", 0}, {&s.Thread, g, "m", 0},
		{&s.CallSP, g, "syscallsp", 0}, {&s.CallPC, g, "syscallpc", 0}, {new(uint64), g, "sched", 0},
		{&s.SP, saved, "sp", sched}, {&s.PC, saved, "pc", sched}, {&s.BP, saved, "bp", sched},
		{&s.TID, types["runtime.m"], "procid", 0},
	} {
		offset, ok := m.in[m.member]
		if !ok || offset >= mostOffset {
			return fmt.Errorf("this version of Go's runtime is not known: its debug information has no member %s", m.member)
		}
		*m.to = m.base + offset
		if m.to != &s.TID {
			s.Size = max(s.Size, *m.to+8)
		}
	}
	s.CallBP = s.CallPC // older versions do not keep it
	if at, ok := g["syscallbp"]; ok && at < mostOffset {
		s.CallBP, s.Size = at, max(s.Size, at+8)
	}
	return nil
}

const mostOffset = 1 << 12

// readTypes returns the offsets of the members of structures, by their names. The linker
// describes all types of a Go program in units of the package runtime.
func readTypes(file *elf.File, names ...string) (map[string]map[string]uint64, error) {
	data, info, err := readDebug(file)
	if err != nil {
		return nil, err
	}
	types := make(map[string]map[string]uint64)
	r := data.Reader()
	for at, next := uint64(0), uint64(0); at < uint64(len(info)) && len(types) < len(names); at = next {
		var first uint64
		if first, next, err = unitAt(info, at); err != nil {
			return nil, err
		}
		r.Seek(dwarf.Offset(first))
		unit, err := r.Next()
		if err != nil || unit == nil {
			return types, err
		}
		if name, _ := unit.Val(dwarf.AttrName).(string); name == "runtime" && unit.Children {
			if err := readUnit(r, types, names); err != nil {
				return nil, err
			}
		}
	}
	return types, nil
}

// unitAt returns the offsets of the first entry of a unit and of the next unit (DWARF 5,
// 7.5.1).
func unitAt(info []byte, at uint64) (first, next uint64, err error) {
	const length, short, long = 4, 11, 12 // of headers before version 5, and since
	left := uint64(len(info)) - at
	if left < long {
		return 0, 0, errDebug
	}
	size := uint64(binary.LittleEndian.Uint32(info[at:]))
	if size > left-length || size < long-length {
		return 0, 0, errDebug // or of 64 bits, which no compiler of Go writes
	}
	if binary.LittleEndian.Uint16(info[at+length:]) < 5 {
		return at + short, at + length + size, nil
	}
	return at + long, at + length + size, nil
}

var errDebug = errors.New("malformed debug information")

// readUnit reads the structures of a unit.
func readUnit(r *dwarf.Reader, types map[string]map[string]uint64, names []string) error {
	for range mostEntries {
		entry, err := r.Next()
		if err != nil || entry == nil || entry.Tag == 0 || len(types) == len(names) {
			return err
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		switch {
		case entry.Tag == dwarf.TagStructType && slices.Contains(names, name) && types[name] == nil:
			if types[name], err = readMembers(r); err != nil {
				return err
			}
		case entry.Children:
			r.SkipChildren()
		}
	}
	return nil
}

// readMembers reads the members of the structure whose entry was read last.
func readMembers(r *dwarf.Reader) (map[string]uint64, error) {
	members := make(map[string]uint64)
	for {
		entry, err := r.Next()
		if err != nil || entry == nil || entry.Tag == 0 {
			return members, err
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		if offset, ok := entry.Val(dwarf.AttrDataMemberLoc).(int64); ok && entry.Tag == dwarf.TagMember {
			members[name] = uint64(offset)
		}
		if entry.Children {
			r.SkipChildren()
		}
	}
}

// readDebug reads the sections that describe types, and returns the units as well.
func readDebug(file *elf.File) (*dwarf.Data, []byte, error) {
	read := make(map[string][]byte)
	left := uint64(mostDebug)
	for _, name := range []string{"abbrev", "info", "str", "addr", "str_offsets", "line_str"} {
		section := file.Section(".debug_" + name)
		if section == nil || section.Type == elf.SHT_NOBITS {
			continue
		}
		if section.Size > min(debugRatio*section.FileSize+leastDebug, left) {
			return nil, nil, fmt.Errorf("the debug information in %s takes more memory than is spent on it", section.Name)
		}
		left -= section.Size
		b, err := section.Data()
		if err != nil {
			return nil, nil, err
		}
		read[name] = b
	}
	if read["info"] == nil {
		return nil, nil, errNoDebug
	}
	data, err := dwarf.New(read["abbrev"], nil, nil, read["info"], nil, nil, nil, read["str"])
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"addr", "str_offsets", "line_str"} {
		if err := data.AddSection(".debug_"+name, read[name]); err != nil {
			return nil, nil, err
		}
	}
	return data, read["info"], nil
}

// mappedScheduler is a Scheduler with the bounds of the file's code, or the reason why there
// is none.
type mappedScheduler struct {
	mappedRuntime
	scheduler *Scheduler
	why       error
}

// Scheduler returns how the Go program that is mapped at m, code, keeps its goroutines; ok is
// false if the file is no Go program.
func (c *Catalog) Scheduler(pid int, m proc.Mapping) (s Scheduler, ok bool, err error) {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	known, err := c.schedulers.Of(f, m, func() (mappedScheduler, error) {
		file, err := proc.ReadELF(f)
		if err != nil {
			return mappedScheduler{}, err
		}
		mapped, err := mappedAt(file, m)
		k := mappedScheduler{mappedRuntime: mapped}
		if err != nil || mapped.Runtime == nil {
			return k, err
		}
		if k.why = mapped.Unknown; k.why == nil {
			k.scheduler, k.why = readScheduler(file, mapped.G)
		}
		return k, nil
	})
	if err != nil || known.Runtime == nil {
		return s, false, err
	}
	if known.why != nil {
		return s, true, known.why
	}
	return known.scheduler.At(m.Start - m.Offset - known.shift), true, nil
}
