//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"mirador/omis/program"
)

// hook is a tracepoint of the kernel at which programs run for processes. However many
// there are, it is attached to once: a program finds out whose event it is, and hands
// over to that process's own. It stands as long as there is one.
type hook struct {
	placer     *Placer
	name       string
	tracepoint string
	root       func(*hook) asm.Instructions
	bodies     *ebpf.Map // slot -> program
	next       slot
	free       []slot
	standing   []io.Closer // the root and its attachment
	users      int
}

// slot is where the root finds a program. 0 is nobody's.
type slot uint16

// mostBodies bounds how many programs a hook hands over to.
const mostBodies = 1 << 13

func (h *hook) open(set maps) (err error) {
	h.next = 1
	h.bodies, err = set.Map(&ebpf.MapSpec{Name: h.name, Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: mostBodies})
	return err
}

// maps makes maps that are freed later.
type maps interface {
	Map(*ebpf.MapSpec) (*ebpf.Map, error)
}

// load loads a program for the hook, which gets what the tracepoint is about with its
// types, so that members are read at the price of a load.
func (h *hook) load(code asm.Instructions) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "mirador", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: h.tracepoint,
		Instructions: code, License: "GPL",
	})
}

// enter counts a user; the first one attaches.
func (h *hook) enter() error {
	if h.users++; h.users > 1 || len(h.standing) > 0 {
		return nil
	}
	if err := h.attach(); err != nil {
		h.leave()
		return &program.Refusal{Why: fmt.Sprintf("the kernel runs no program at its tracepoint %s: %v", h.tracepoint, err)}
	}
	return nil
}

func (h *hook) attach() error {
	p, err := h.load(h.root(h))
	if err != nil {
		return err
	}
	h.standing = append(h.standing, p)
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	h.standing = append(h.standing, l)
	if e := h.placer.estate; e != nil {
		h.placer.fails(l.Pin(e.folder.Path(h.pin())))
	}
	return nil
}

// leave is the contrary of enter.
func (h *hook) leave() error {
	if h.users--; h.users > 0 {
		return nil
	}
	var errs []error
	if e := h.placer.estate; e != nil {
		errs = append(errs, e.remove(h.pin()))
	}
	for i := len(h.standing) - 1; i >= 0; i-- {
		errs = append(errs, h.standing[i].Close())
	}
	h.standing = nil
	return errors.Join(errs...)
}

// take reserves a slot.
func (h *hook) take() (slot, error) {
	if n := len(h.free); n > 0 {
		s := h.free[n-1]
		h.free = h.free[:n-1]
		return s, nil
	}
	if h.next == mostBodies {
		return 0, &program.Refusal{Why: fmt.Sprintf("the kernel runs %d programs at %s already", mostBodies, h.tracepoint)}
	}
	h.next++
	return h.next - 1, nil
}

// put has the root hand over to a program from now on.
func (h *hook) put(s slot, code asm.Instructions) error {
	p, err := h.load(code)
	if err != nil {
		return &program.Refusal{Why: fmt.Sprintf("the kernel refuses the program: %v", err)}
	}
	defer p.Close() // the table keeps it
	if err := h.bodies.Put(uint32(s), p); err != nil {
		return &program.Refusal{Why: fmt.Sprintf("the kernel takes no program at %s: %v", h.tracepoint, err)}
	}
	return nil
}

// drop takes the program of a slot away.
func (h *hook) drop(s slot) {
	_ = h.bodies.Delete(uint32(s)) // it may never have got one
	h.free = append(h.free, s)
}

// quickSlots are the first of all slots, which the kernel jumps to directly: it does so
// where the number is in the code. Elsewhere it takes it out of the table, and jumps in
// the way that no processor foresees (a retpoline).
const quickSlots = 4

// handOver continues with the program of the slot in R3, if there is one. What the
// tracepoint told is in a register that calls leave alone.
func (h *hook) handOver(told asm.Register) (code asm.Instructions) {
	jump := func() {
		code = append(code, asm.Mov.Reg(asm.R1, told), asm.LoadMapPtr(asm.R2, h.bodies.FD()), asm.FnTailCall.Call())
	}
	for s := range int32(quickSlots) {
		other := fmt.Sprint(h.name, "slot", s)
		code = append(code, asm.JNE.Imm(asm.R3, 1+s, other), asm.Mov.Imm(asm.R3, 1+s))
		jump()
		code = append(code, asm.Ja.Label(h.name+"handed"), asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	jump()
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(h.name+"handed"))
}
