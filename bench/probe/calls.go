//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"mirador/bench/peers"
	"mirador/bench/report"
	"mirador/bench/subject"
)

// Syscalls measures what counting by name adds to a system call.
func (b *Bench) Syscalls() (t *report.Table, err error) {
	t = &report.Table{Name: "syscalls", Title: "What it adds to a system call (getppid) to be counted by name"}
	target, err := b.program.StartCopy()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, target.End()) }()
	restore, err := subject.OnCPU(cpu)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, restore(), b.ctx.Err()) }()
	if err := target.Pin(cpu); err != nil {
		return t, err
	}
	bare, err := newBareCalls()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	added, why, err := b.countCalls(target, append(b.ourCounters(), append([]peers.Counter{{Name: bareCalls, Start: bare.start}}, b.peers.Counters()...)...))
	if err != nil {
		return t, err
	}
	compareCalls(t, added, why)
	return t, nil
}

const bareCalls = "bare eBPF, raw_tp"

// compareCalls adds the rows. Only the kernel placement counts system calls without a
// stop.
func compareCalls(t *report.Table, added map[string]report.Stat, why map[string]string) {
	row := func(ours, than string, goal report.Goal) {
		r := report.Row{What: ours + ", getppid", Unit: report.Nanoseconds, Ours: added[ours], Than: than, Goal: goal, Why: why[ours]}
		if other, ok := added[than]; ok {
			r.Reference = &other
		} else if r.Why == "" {
			r.Why = why[than]
		}
		t.Add(r)
	}
	row(inKernel, "", report.AtMost(110))
	row(inKernel, "strace -c", report.Cheaper(100))
	row(inKernel, "bpftrace", report.Beside())
	row(inKernel, bareCalls, none)
	row(trap, "strace -c", report.Beside())
}

// ourCounters counts by a request that names the system call.
func (b *Bench) ourCounters() []peers.Counter {
	var list []peers.Counter
	for _, m := range b.monitors {
		if m.placement == inCode {
			continue // this placement has no events of the kernel
		}
		list = append(list, peers.Counter{Name: m.placement, Start: m.countCalls})
	}
	return list
}

func (m *rig) countCalls(t *subject.Target) (func() error, error) {
	h, err := m.attach(t.PID())
	if err != nil {
		return nil, err
	}
	counter, err := h.make("pa_counter_create()")
	if err == nil {
		_, err = h.define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([%s],1)`, counter)
	}
	if err == nil {
		_, err = h.do(": csr_enable([])")
	}
	if err != nil {
		return nil, errors.Join(err, h.finish())
	}
	return h.finish, nil
}

const callsBudget = 20 * time.Second

// countCalls measures counters in turn. It measures a call without a counter before each
// one, because programs at the kernel's tracepoints affect all processes.
func (b *Bench) countCalls(t *subject.Target, all []peers.Counter) (added map[string]report.Stat, why map[string]string, err error) {
	taken := make(map[string]*pairs)
	why = make(map[string]string)
	begin := time.Now()
	for round := 0; round < b.Rounds && !b.spent(begin, callsBudget); round++ {
		for _, c := range all {
			if why[c.Name] != "" {
				continue
			}
			b.Progress.Say("system calls: %s, round %d of %d", c.Name, round+1, b.Rounds)
			p := taken[c.Name]
			if p == nil {
				p = &pairs{}
				taken[c.Name] = p
			}
			err := p.calls(t, c)
			if reason, missing := subject.WhyMissing(err); missing {
				why[c.Name] = reason
			} else if err != nil {
				return nil, nil, fmt.Errorf("system calls, %s: %w", c.Name, err)
			}
		}
	}
	added = make(map[string]report.Stat)
	for name, p := range taken {
		if why[name] == "" {
			added[name] = p.added()
		}
	}
	return added, why, nil
}

// calls adds one pair.
func (p *pairs) calls(t *subject.Target, c peers.Counter) error {
	const ask = "syscalls %d"
	bare, err := t.Ask(1, ask, batches)
	if err != nil {
		return err
	}
	stop, err := c.Start(t)
	if err != nil {
		return err
	}
	counted, err := t.Ask(1, ask, batches)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	p.probed, p.bare = append(p.probed, counted[0]), append(p.bare, bare[0])
	return nil
}

// callCounts is the minimum that eBPF can do: a number for each system call.
type callCounts struct {
	counts, pid *ebpf.Map
	program     *ebpf.Program
}

// mostCalls is greater than any number of a system call.
const mostCalls = 1024

func newBareCalls() (c *callCounts, err error) {
	c = &callCounts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.counts, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: mostCalls}); err != nil {
		return c, err
	}
	if c.pid, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return c, err
	}
	c.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL", Instructions: c.counting()})
	return c, err
}

// counting assembles the eBPF program that counts the system calls of one process by
// number. The second word of its context is the number of the call.
func (c *callCounts) counting() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 8, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.LoadMapValue(asm.R1, c.pid.FD(), 0),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R1, "out"),
		asm.JGE.Imm(asm.R6, mostCalls, "out"),
		asm.StoreMem(asm.RFP, -4, asm.R6, asm.Word),
		asm.LoadMapPtr(asm.R1, c.counts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return(),
	}
}

func (c *callCounts) start(t *subject.Target) (func() error, error) {
	if err := c.pid.Put(uint32(0), uint64(t.PID())); err != nil {
		return nil, err
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: c.program})
	if err != nil {
		return nil, err
	}
	return l.Close, nil
}

func (c *callCounts) close() error {
	return errors.Join(c.program.Close(), c.pid.Close(), c.counts.Close())
}
