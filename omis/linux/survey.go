//go:build linux && amd64

package linux

import (
	"bytes"

	"mirador/omis/code/x86/branch"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/rendezvous"
)

// survey returns how a jump can be written at an address, or an error.
func (m *meeting) survey(addr uint64) (rendezvous.Plan, error) {
	layout, err := m.o.node.images.Layout(m.o.proc.PID)
	if err != nil {
		return rendezvous.Plan{}, err
	}
	begin, end := layout.Bounds(addr)
	if begin == end {
		return rendezvous.Plan{}, refuse(addr, "it is not known in which function it is")
	}
	if m.o.node.sharing && addr == begin {
		return rendezvous.Plan{}, refuse(addr, "the first instruction of a function is left to other tools")
	}
	code := make([]byte, end-begin)
	if _, err := m.o.space.memory.ReadAt(code, int64(begin)); err != nil {
		return rendezvous.Plan{}, err
	}
	function := rendezvous.Function{Start: begin, Code: m.o.space.unpatched(begin, code)}
	plan, err := rendezvous.Survey(function, addr)
	if err != nil {
		return plan, err
	}
	if len(m.site.Covering(addr, plan.Length())) > 0 {
		return plan, refuse(addr, "another jump is too near")
	}
	if m.o.patcher.isPatched(addr, addr+plan.Length()) {
		return plan, refuse(addr, "the code of a probe is too near")
	}
	for at := range plan.Length() {
		if m.o.space.breakpoints[addr+at] != nil {
			return plan, refuse(addr, "a breakpoint is too near")
		}
	}
	return plan, m.checkText(&plan, function)
}

func refuse(addr uint64, why string) error { return &rendezvous.Refusal{Addr: addr, Why: why} }

// checkText compares the function with its file, apart from the monitor's own changes, since
// jumps do not work together with uprobes of other tools. It also checks whether branches of
// other functions of the module lead into the middle of the instructions that a jump will
// displace: functions written in assembler have entries in the middle of others.
func (m *meeting) checkText(plan *rendezvous.Plan, function rendezvous.Function) error {
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return err
	}
	area, _ := mapped.At(plan.Addr)
	module, err := m.o.node.codes.Of(m.o.proc.PID, area)
	if err != nil {
		return err
	}
	begin := function.Start - area.Start
	switch at := plan.Addr - area.Start; {
	case module.Go:
		return refuse(plan.Addr, "it is of a program in Go, whose stacks may have no room for a hold")
	case !bytes.Equal(function.Code, module.Code(begin, begin+uint64(len(function.Code)))):
		return refuse(plan.Addr, "another tool has patched its function")
	case plan.Whole():
		return nil
	case module.Lands(at, at+plan.Length()):
		return refuse(plan.Addr, "a branch may lead into its middle")
	}
	lowest, highest := max(area.Start, plan.Addr-branch.Reach), min(area.End, plan.Addr+plan.Length()+branch.Reach)
	code := make([]byte, highest-lowest)
	if _, err := m.o.space.memory.ReadAt(code, int64(lowest)); err != nil {
		return err
	}
	if branch.ShortBetween(m.o.space.unpatched(lowest, code), lowest, plan.Addr, plan.Addr+plan.Length()) {
		return refuse(plan.Addr, "a short branch may lead into its middle")
	}
	return nil
}

// clearWay makes sure that no thread of the frozen process comes to the middle of what is to
// be displaced. Threads there are moved to the copy; it returns an error if a signal handler
// will return there.
func (m *meeting) clearWay(plan rendezvous.Plan) error {
	if plan.Whole() {
		return nil
	}
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return err
	}
	returns := func(addr uint64) bool { return m.leadsInto(&plan, addr) }
	for _, t := range m.o.tracer.threads {
		var regs ptrace.Regs
		if !t.stopped() || ptrace.GetRegs(t.tid, &regs) != nil {
			return refuse(plan.Addr, "a thread does not stop")
		}
		if to, ok := m.site.Moved(regs.Rip); ok {
			if err := ptrace.SetPC(t.tid, to); err != nil {
				return err
			}
		} else if returns(regs.Rip) {
			return refuse(plan.Addr, "a thread is in its middle")
		}
		if m.stackHas(&regs, mapped, returns) {
			return refuse(plan.Addr, "a signal handler may return to its middle")
		}
	}
	return nil
}

// leadsInto reports whether a thread at an address is in the middle of the instructions that a
// jump will displace, or comes there next: from the copy of one of the instructions, or from a
// removed patch that threads have not left yet.
func (m *meeting) leadsInto(plan *rendezvous.Plan, addr uint64) bool {
	if plan.Inside(addr) {
		return true
	}
	if g := m.o.node.grounds.of(m.o.proc); g != nil {
		if to, ok := g.site.Leads(addr); ok {
			return plan.Inside(to)
		}
	}
	if place, ok := m.site.PlaceOf(addr); ok && place == plan.Addr {
		return false // that copy has all of the instructions
	}
	if !m.o.space.inArena(addr) {
		return false
	}
	at := m.o.space.inPlace(addr)
	return at >= plan.Addr && at < plan.Addr+plan.Length()
}
