//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
)

// hook is a tracepoint of the kernel at which processes have programs. One root program is attached for
// all processes: it finds out in which process the event happened, and continues with that process's
// program by a tail call. It is attached while the hook has users.
type hook struct {
	code.Bodies
	keeper     *keeper
	tracepoint string
	root       func(*code.Bodies) asm.Instructions
	next       slot // slots from here on were never used
	free       []slot
	standing   []io.Closer // the root program and its attachment
	users      int
}

// slot is where the root program finds a program in the table. Slot 0 is not used.
type slot uint16

// mostBodies is the most programs that a hook can have.
const mostBodies = 1 << 13

func (h *hook) open(set maps) (err error) {
	h.next = 1
	h.Map, err = set.Map(&ebpf.MapSpec{Name: h.Name, Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: mostBodies})
	return err
}

// maps makes maps and frees them when the placer is closed.
type maps interface {
	Map(*ebpf.MapSpec) (*ebpf.Map, error)
}

// load loads a program for the hook. The type of the program gives the tracepoint's arguments their
// kernel types, so that the program can read members without calling a helper.
func (h *hook) load(code asm.Instructions) (*ebpf.Program, error) {
	return tracepoint.Load(&ebpf.ProgramSpec{
		Name: "mirador", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: h.tracepoint,
		Instructions: code, License: "GPL",
	})
}

// enter adds a user. The first user attaches the root program.
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
	p, err := h.load(h.root(&h.Bodies))
	if err != nil {
		return err
	}
	h.standing = append(h.standing, p)
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	h.standing = append(h.standing, l)
	if s := h.keeper.state; s != nil {
		h.keeper.fails(l.Pin(s.Folder.Path(persist.Hook(h.Name))))
	}
	return nil
}

// leave removes a user. After the last user it detaches the root program.
func (h *hook) leave() error {
	if h.users--; h.users > 0 {
		return nil
	}
	var errs []error
	if s := h.keeper.state; s != nil {
		errs = append(errs, s.Remove(persist.Hook(h.Name)))
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

// put loads a program and writes it to a slot of the table, where the root program finds it.
func (h *hook) put(s slot, code asm.Instructions) error {
	p, err := h.load(code)
	if err != nil {
		return &program.Refusal{Why: fmt.Sprintf("the kernel refuses the program: %v", err)}
	}
	defer p.Close() // the table keeps it
	if err := h.Map.Put(uint32(s), p); err != nil {
		return &program.Refusal{Why: fmt.Sprintf("the kernel takes no program at %s: %v", h.tracepoint, err)}
	}
	return nil
}

// drop removes the program of a slot and frees the slot.
func (h *hook) drop(s slot) {
	_ = h.Map.Delete(uint32(s)) // the slot may have no program yet
	h.free = append(h.free, s)
}
