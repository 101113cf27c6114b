//go:build linux && amd64

package library

import (
	"encoding/binary"

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
	Version string // "" where its module has no versions
	Module  string // path
	Program bool   // it belongs to the program, not to a library
	Addr    uint64 // where a call starts

	Proto *prototype.Func

	// Own is the code of the library: calls from there are its own affair. A
	// library of several modules gets theirs, too.
	Own []Range
}

// Registers are those of a thread.
type Registers struct {
	unix.PtraceRegs
	// FP is the FXSAVE area (PTRACE_GETFPREGS), needed where NeedsFP tells so;
	// without it floating values are 0.
	FP []byte
}

// ReturnAddress is where a call returns to, read as it starts. The call has
// ended when the thread is there with a stack pointer 8 higher.
func ReturnAddress(r *Registers, mem prototype.Memory) (uint64, error) {
	var b [8]byte
	if _, err := mem(b[:], r.Rsp); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// ByApplication tells whether the application itself made a call that returns
// to an address, not the library (OMIS 8.1.3). The program's own functions are
// called by the application, whoever calls them.
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

// NeedsFP tells whether floating registers must be read as a call starts, and as
// it ends.
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
	for _, c := range t.Eights {
		if c == prototype.ClassVector {
			return true
		}
	}
	return false
}

// Started decodes the parameters of a call that starts at Addr, one value each.
// args are for Ended.
func (f *Function) Started(r *Registers, mem prototype.Memory) (values []omis.Value, args []prototype.Arg) {
	args = arguments(f.Proto, r, mem)
	return f.Proto.Started(args, mem), args
}

// Ended decodes a call that has returned: the result (0 of a function without
// one), then the parameters.
func (f *Function) Ended(args []prototype.Arg, r *Registers, mem prototype.Memory) []omis.Value {
	t := &f.Proto.Result
	return f.Proto.Ended(args, t.Value(result(t, r, mem)), mem)
}
