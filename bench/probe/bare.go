//go:build linux && amd64

package probe

import (
	"errors"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// bare is the least that eBPF programs can do: one number for all threads, or by
// threads the time of entry, the number of calls, the sum and the greatest of their
// durations. Nothing in them can be switched off, read while they run, or reset.
type bare struct {
	sum, rows          *ebpf.Map
	count, enter, exit *ebpf.Program
}

func newBare() (b *bare, err error) {
	b = &bare{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.sum, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return b, err
	}
	spec := &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 32, MaxEntries: 4096, Flags: unix.BPF_F_NO_PREALLOC}
	if b.rows, err = ebpf.NewMap(spec); err != nil {
		return b, err
	}
	for to, code := range map[**ebpf.Program]asm.Instructions{&b.count: b.counting(), &b.enter: b.entering(), &b.exit: b.exiting()} {
		spec := &ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, Instructions: code, License: "GPL"}
		if *to, err = ebpf.NewProgram(spec); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *bare) close() error {
	var errs []error
	for _, p := range []*ebpf.Program{b.count, b.enter, b.exit} {
		errs = append(errs, p.Close())
	}
	for _, m := range []*ebpf.Map{b.sum, b.rows} {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

func (b *bare) start(t *target, s subject) (func() error, error) {
	if !s.timed {
		return b.set(t, uprobe{b.count, t.at[s.function], false})
	}
	return b.set(t, uprobe{b.enter, t.at[s.function], false}, uprobe{b.exit, t.ret[s.function], false})
}

// startReturning times up to a return address that the kernel puts in the place of the
// function's own: what a C program without exceptions stands.
func (b *bare) startReturning(t *target, s subject) (func() error, error) {
	return b.set(t, uprobe{b.enter, t.at[s.function], false}, uprobe{b.exit, t.at[s.function], true})
}

type uprobe struct {
	program   *ebpf.Program
	addr      uint64
	returning bool
}

func (b *bare) set(t *target, list ...uprobe) (func() error, error) {
	var links []io.Closer
	stop := func() error {
		var errs []error
		for _, l := range links {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	file, err := link.OpenExecutable(t.path)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		attach := file.UprobeMulti
		if u.returning {
			attach = file.UretprobeMulti
		}
		l, err := attach(nil, u.program, &link.UprobeMultiOptions{Addresses: []uint64{u.addr - base}, PID: uint32(t.pid())})
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		links = append(links, l)
	}
	return stop, nil
}

func (b *bare) counting() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, b.sum.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}
}

// lookup finds the row of the thread.
func (b *bare) lookup() asm.Instructions {
	return asm.Instructions{
		asm.FnGetCurrentPidTgid.Call(),
		asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8),
		asm.LoadMapPtr(asm.R1, b.rows.FD()),
		asm.FnMapLookupElem.Call(),
	}
}

func (b *bare) entering() asm.Instructions {
	return append(b.lookup(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R6, 0, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
		asm.FnKtimeGetNs.Call().WithSymbol("new"),
		asm.StoreMem(asm.RFP, -40, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(asm.RFP, -32, asm.R0, asm.DWord), asm.StoreMem(asm.RFP, -24, asm.R0, asm.DWord), asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, b.rows.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -40),
		asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, 0), asm.Return())
}

func (b *bare) exiting() asm.Instructions {
	return append(b.lookup(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord), asm.Sub.Reg(asm.R0, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, 8, asm.DWord), asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R6, 8, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, 16, asm.DWord), asm.Add.Reg(asm.R1, asm.R0), asm.StoreMem(asm.R6, 16, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, 24, asm.DWord), asm.JGE.Reg(asm.R1, asm.R0, "out"), asm.StoreMem(asm.R6, 24, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
}
