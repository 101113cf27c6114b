//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"mirador/omis"
	"mirador/omis/linux/landing"
	"mirador/omis/linux/proc"
)

// A monitor that is killed while the kernel takes uprobes out for it, or gives up setting
// them, leaves some of them for ever: with SIGKILL on its way, the kernel does not get at
// the memory of the process any more ("failed to unregister, leaking uprobe"). Nobody
// counts there then, but each hit costs what it did, and nothing else can be put there.
// The kernel takes such a uprobe out with the next one that is set at its place and
// taken out. So a monitor writes down what it is about to do.

// changeRecord are the uprobes of a bunch that are being set or taken out; its key is
// the bunch's serial number.
type changeRecord struct {
	Proc    omis.ProcID `json:"proc"`
	Members []uint64    `json:"members"` // their addresses
}

// changing writes down that the uprobes of a bunch are about to be set or taken out,
// changed that they have been.
func (b *bunch) changing() {
	e := b.placer.estate
	if e == nil {
		return
	}
	r := changeRecord{Proc: b.target.proc}
	for _, pl := range b.members {
		r.Members = append(r.Members, pl.site.addr)
	}
	b.placer.fails(e.book.Put(keyOf(changePrefix, b.serial), r))
}

func (b *bunch) changed() {
	if e := b.placer.estate; e != nil {
		b.placer.fails(e.book.Delete(keyOf(changePrefix, b.serial)))
	}
}

// mend takes out what uprobes a former monitor has left in this way. Those that links
// still have stay.
func (e *estate) mend(codes *landing.Catalog) error {
	return each(e, changePrefix, func(n int, r changeRecord) error {
		return errors.Join(r.mend(codes), e.book.Delete(keyOf(changePrefix, n)))
	})
}

// Mend is that for a monitor which no other one comes after.
func Mend(book Book) error { return (&estate{book: book}).mend(landing.NewCatalog()) }

func (r *changeRecord) mend(codes *landing.Catalog) error {
	if proc.Alive(r.Proc) != nil {
		return nil
	}
	sv, err := newSurvey(r.Proc.PID, codes, nil)
	if err != nil {
		return err
	}
	defer sv.close()
	byFile := make(map[string][]uint64)
	for _, addr := range r.Members {
		if s, err := sv.site(addr); err != nil && s.isTrapped(sv) {
			byFile[s.path] = append(byFile[s.path], s.offset)
		}
	}
	if len(byFile) == 0 {
		return nil
	}
	nothing, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer nothing.Close()
	var errs []error
	for path, offsets := range byFile {
		errs = append(errs, setAndTakeOut(nothing, r.Proc.PID, path, offsets))
	}
	return errors.Join(errs...)
}

// isTrapped tells that there is a breakpoint, and else what the file has.
func (s *site) isTrapped(sv *survey) bool {
	const int3 = 0xcc
	now := make([]byte, len(s.code))
	return len(now) > 0 && sv.memory.at(now, s.addr) == len(now) && now[0] == int3 && string(now[1:]) == string(s.code[1:])
}

func setAndTakeOut(program *ebpf.Program, pid int, path string, offsets []uint64) error {
	file, err := link.OpenExecutable(path)
	if err != nil {
		return err
	}
	l, err := file.UprobeMulti(nil, program, &link.UprobeMultiOptions{PID: uint32(pid), Addresses: offsets})
	if err != nil {
		return fmt.Errorf("uprobes of a killed monitor stand in process %d that cannot be taken out: %w", pid, err)
	}
	return l.Close()
}
