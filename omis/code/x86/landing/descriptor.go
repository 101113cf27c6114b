//go:build linux && amd64

package landing

import (
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"

	"mirador/omis/host/proc"
	"mirador/sir/safedwarf"
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
func readScheduler(ctx context.Context, f *os.File, file *elf.File, g int32) (s *Scheduler, err error) {
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
	types, err := readTypes(ctx, f, file, "runtime.g", "runtime.m", "runtime.gobuf")
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
	s.CallBP = s.CallPC // older versions of Go have no member syscallbp
	if at, ok := g["syscallbp"]; ok && at < mostOffset {
		s.CallBP, s.Size = at, max(s.Size, at+8)
	}
	return nil
}

const mostOffset = 1 << 12

// readTypes returns the offsets of the members of structures, by their names. The linker
// describes all types of a Go program in units of the package runtime.
func readTypes(ctx context.Context, f *os.File, file *elf.File, names ...string) (map[string]map[string]uint64, error) {
	data, err := safedwarf.Open(ctx, f, file)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	types := make(map[string]map[string]uint64)
	r := data.Reader(ctx)
	for u := range data.Units() {
		r.Seek(u.First)
		unit, err := r.Next()
		if err != nil || unit == nil || len(types) == len(names) {
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

// readUnit reads the structures of a unit.
func readUnit(r *safedwarf.Reader, types map[string]map[string]uint64, names []string) error {
	for {
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
		default:
			if err := r.SkipChildren(); err != nil {
				return err
			}
		}
	}
}

// readMembers reads the members of the structure whose entry was read last.
func readMembers(r *safedwarf.Reader) (map[string]uint64, error) {
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
		if err := r.SkipChildren(); err != nil {
			return nil, err
		}
	}
}

// mappedScheduler is a Scheduler with the bounds of the file's code, or the reason why there
// is none.
type mappedScheduler struct {
	mappedRuntime
	scheduler *Scheduler
	why       error
}

// Scheduler returns how the Go program whose code is mapped at m keeps its goroutines; ok is
// false if the file is no Go program. It stops reading when ctx ends.
func (c *Catalog) Scheduler(ctx context.Context, pid int, m proc.Mapping) (s Scheduler, ok bool, err error) {
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
			k.scheduler, k.why = readScheduler(ctx, f, file, mapped.G)
		}
		if ctx.Err() != nil || errors.Is(k.why, safedwarf.ErrBudget) { // a later call can succeed
			return k, k.why
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
