//go:build linux && amd64

package probe

import (
	"errors"
	"io"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/bench/subject"
)

// bare is the minimum that eBPF programs can do: one number for all threads, or for each
// thread the time of entry, the number of calls, and the sum and maximum of their
// durations. It cannot be switched off, read while it runs, or reset.
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

// start probes entry and return, or only the entry.
func (b *bare) start(program *subject.Program, task subject.Task) (*subject.Standing, error) {
	list := []uprobe{{b.count, program.Entry(task.Function), false}}
	if task.Timed {
		list = []uprobe{{b.enter, program.Entry(task.Function), false}, {b.exit, program.Return(task.Function), false}}
	}
	return b.stand(program, task, list...)
}

// startReturning times by a uretprobe, which replaces the function's return address; C
// programs without exceptions tolerate this.
func (b *bare) startReturning(program *subject.Program, task subject.Task) (*subject.Standing, error) {
	at := program.Entry(task.Function)
	return b.stand(program, task, uprobe{b.enter, at, false}, uprobe{b.exit, at, true})
}

func (b *bare) stand(program *subject.Program, task subject.Task, list ...uprobe) (*subject.Standing, error) {
	t, err := program.StartCopy()
	if err != nil {
		return nil, err
	}
	remove, err := set(t, list...)
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	s := &subject.Standing{Target: t, Function: task.Function, Stop: func() error { return errors.Join(remove(), t.End()) }}
	if task.Timed {
		s.Begin = func() error { return b.reset(t.PID()) }
		s.Mean = func() (float64, error) { return b.mean(t.PID()) }
	}
	return s, nil
}

// row holds the measurements of a thread.
type row struct{ Entry, Calls, Sum, Greatest uint64 }

// key returns the key of the only thread of a process.
func key(pid int) uint64 { return uint64(pid)<<32 | uint64(pid) }

func (b *bare) reset(pid int) error {
	err := b.rows.Delete(key(pid))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

func (b *bare) mean(pid int) (float64, error) {
	var r row
	if err := b.rows.Lookup(key(pid), &r); err != nil {
		return 0, err
	}
	return float64(r.Sum) / float64(max(r.Calls, 1)), nil
}

// uprobe is a program at an address.
type uprobe struct {
	program   *ebpf.Program
	addr      uint64
	returning bool
}

// set sets uprobes in one process, with one link for each program.
func set(t *subject.Target, list ...uprobe) (remove func() error, err error) {
	var links []io.Closer
	remove = func() error {
		var errs []error
		for _, l := range links {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	file, err := link.OpenExecutable(t.Path)
	if err != nil {
		return nil, err
	}
	for len(list) > 0 {
		first := list[0]
		var offsets []uint64
		list = slices.DeleteFunc(list, func(u uprobe) bool {
			same := u.program == first.program && u.returning == first.returning
			if same {
				offsets = append(offsets, u.addr-subject.Base)
			}
			return same
		})
		attach := file.UprobeMulti
		if first.returning {
			attach = file.UretprobeMulti
		}
		l, err := attach(nil, first.program, &link.UprobeMultiOptions{Addresses: offsets, PID: uint32(t.PID())})
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		links = append(links, l)
	}
	return remove, nil
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
