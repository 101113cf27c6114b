//go:build linux && amd64

package library

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/prototype"
)

// Range is a range of addresses.
type Range struct{ Start, End uint64 }

func (r Range) has(addr uint64) bool { return r.Start <= addr && addr < r.End }

// Function is an exported function of a process.
type Function struct {
	Name    string
	Version string // "" if its module has no versions
	Module  string // path
	Program bool   // the function belongs to the program, not to a library
	Addr    uint64 // where a call starts

	Proto *prototype.Func

	// Own is the code of the library: calls from there are internal. A caller adds the
	// code of the other modules of a library that has several.
	Own []Range
}

// Registers holds the registers of a thread.
type Registers struct {
	unix.PtraceRegs
	// FP is the FXSAVE area (PTRACE_GETFPREGS), needed if NeedsFP says so; without it
	// floating point values are 0.
	FP []byte
}

// ReturnAddress returns the address that a call returns to, at the start of the call. The
// call has ended when the thread is there with a stack pointer 8 higher.
func ReturnAddress(r *Registers, mem prototype.Memory) (uint64, error) {
	var b [8]byte
	if _, err := mem(b[:], r.Rsp); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// ByApplication reports whether the application itself made a call, not the library (OMIS
// 8.1.3), judging by the return address. Every call of a function of the program itself
// counts as made by the application.
func (f *Function) ByApplication(returnAddress uint64) bool {
	if f.Program {
		return true
	}
	for _, r := range f.Own {
		if r.has(returnAddress) {
			return false
		}
	}
	return true
}

// NeedsFP reports whether floating point registers must be read at the start and at the
// end of a call.
func (f *Function) NeedsFP() (start, end bool) {
	for _, p := range f.Proto.Params {
		start = start || inVectors(p.Type)
	}
	return start, inVectors(f.Proto.Result)
}

func inVectors(t prototype.Type) bool {
	if t.Kind == prototype.Floating {
		return true
	}
	return slices.Contains(t.Eights, prototype.ClassVector)
}

// Started decodes the parameters of a call that starts at Addr, one value each. The
// caller passes args to Ended.
func (f *Function) Started(r *Registers, mem prototype.Memory) (values []omis.Value, args []prototype.Arg) {
	args = arguments(f.Proto, r, mem)
	return f.Proto.Started(args, mem), args
}

// Ended decodes a call that has returned: the result (0 if the function has none), then
// the parameters.
func (f *Function) Ended(args []prototype.Arg, r *Registers, mem prototype.Memory) []omis.Value {
	t := &f.Proto.Result
	return f.Proto.Ended(args, t.Value(result(t, r, mem)), mem)
}
