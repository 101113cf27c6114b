//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/registrar"
)

// A registrar that is killed while the kernel takes uprobes out for it, or gives up
// setting them, leaves some of them for ever: with SIGKILL on its way, the kernel does not
// get at the memory of the process any more ("failed to unregister, leaking uprobe").
// Nobody counts there then, but each hit costs what it did, and nothing else can be put
// there. The kernel takes such a uprobe out with the next one that is set at its place
// and taken out. So a monitor does that if it lives, and writes down what it is about to
// have done, in case it is killed as well.

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
	b.placer.fails(e.book.Put(keyOf(changePrefix, b.serial), b.change()))
}

func (b *bunch) change() *changeRecord {
	r := &changeRecord{Proc: b.target.proc}
	for _, pl := range b.members {
		r.Members = append(r.Members, pl.site.addr)
	}
	return r
}

// takeOut takes the uprobes of a bunch out, if need be by two registrars, and looks at those
// that are gone then: that the kernel says it is done does not tell that it has done so
// everywhere.
func (b *bunch) takeOut(gone *changeRecord) error {
	err := b.placer.uprobes.TakeOut(b.link)
	if err == nil {
		left, failed := gone.mend(b.placer.uprobes, b.placer.codes)
		if left > 0 {
			err = failed // what stands even now is another's, of whom we know nothing
		}
	}
	if errors.Is(err, registrar.ErrKilled) { // while it took them out, or looked at them
		return gone.mendAfterwards(b.placer.uprobes, b.placer.codes)
	}
	return err
}

// gone are the uprobes of a bunch where none of ours is besides: what stands at the same
// address takes along what was left, as soon as it is taken out. The caller holds
// Placer.mu.
func (b *bunch) gone() *changeRecord {
	r := &changeRecord{Proc: b.target.proc}
	for _, pl := range b.members {
		if pl.bunch == b && b.target.sites[pl.site.addr].count <= 1 {
			r.Members = append(r.Members, pl.site.addr)
		}
	}
	return r
}

// How often, and how soon after another, it is looked whether uprobes are left.
const (
	looks     = 40
	lookEvery = 50 * time.Millisecond
)

// mendAfterwards mends until nothing was left twice: of what was on its way to a registrar
// when that was killed, the kernel lets go some time later.
func (r *changeRecord) mendAfterwards(uprobes *registrar.Client, codes *landing.Catalog) error {
	var failed error
	good := 0
	for range looks {
		left, err := r.mend(uprobes, codes)
		if good++; left > 0 || err != nil {
			good, failed = 0, err
		}
		if good == 2 {
			return nil
		}
		time.Sleep(lookEvery)
	}
	return errors.Join(fmt.Errorf("uprobes that nobody has set stand in process %d and come back", r.Proc.PID), failed)
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
		_, err := r.mend(e.uprobes, codes)
		return errors.Join(err, e.book.Delete(keyOf(changePrefix, n)))
	})
}

// Mend is that for a monitor which no other one comes after.
func Mend(uprobes *registrar.Client, book Book) error {
	awaitRegistrar(book, ending, func(string) {})
	return (&estate{book: book, uprobes: uprobes}).mend(landing.NewCatalog())
}

// mend takes out what is left of the uprobes, and says how many that were.
func (r *changeRecord) mend(uprobes *registrar.Client, codes *landing.Catalog) (left int, err error) {
	if proc.Alive(r.Proc) != nil {
		return 0, nil
	}
	sv, err := newSurvey(r.Proc.PID, codes, nil)
	if err != nil {
		return 0, err
	}
	defer sv.close()
	byFile := make(map[string][]uint64)
	var unseen error
	for _, addr := range r.Members {
		s, err := sv.site(addr)
		switch {
		case err == nil:
		case s.isTrapped(sv):
			byFile[s.path] = append(byFile[s.path], s.offset)
			left++
		case s.code == nil && sv.isMapped(addr):
			unseen = err
		}
	}
	if left == 0 {
		return 0, unseen
	}
	nothing, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return left, err
	}
	defer nothing.Close()
	var errs []error
	for path, offsets := range byFile {
		errs = append(errs, setAndTakeOut(uprobes, registrar.Uprobes{Program: nothing, PID: r.Proc.PID, Path: path, Offsets: offsets}))
	}
	return left, errors.Join(errs...)
}

// isMapped tells whether there is code of a file that uprobes could be in.
func (sv *survey) isMapped(addr uint64) bool {
	m, ok := sv.maps.At(addr)
	return ok && m.Exec && m.Private && m.Inode != 0
}

// isTrapped tells that there is a breakpoint, and else what the file has.
func (s *site) isTrapped(sv *survey) bool {
	const int3 = 0xcc
	now := make([]byte, len(s.code))
	return len(now) > 0 && sv.memory.at(now, s.addr) == len(now) && now[0] == int3 && string(now[1:]) == string(s.code[1:])
}

func setAndTakeOut(uprobes *registrar.Client, left registrar.Uprobes) error {
	l, err := uprobes.Set(left)
	if err == nil {
		err = uprobes.TakeOut(l)
	}
	if err != nil {
		return fmt.Errorf("uprobes that nobody has set stand in process %d and cannot be taken out: %w", left.PID, err)
	}
	return nil
}

// registrarKey is the record of the process that sets uprobes for a monitor. It completes
// what it is about when the monitor is killed, and until then there are uprobes that the
// next one does not know.
const registrarKey = "registrar"

func (p *Placer) noteRegistrar(pid int) {
	if p.heir.data == "" {
		return
	}
	start, err := proc.ThreadStart(pid, pid)
	if err == nil {
		err = p.heir.book.Put(registrarKey, omis.ProcID{PID: pid, Start: start})
	}
	p.fails(err)
}

// ending is how long a monitor waits for the registrar of a killed one. A registrar that
// runs ends within tenths of a second.
const ending = time.Minute

// awakeEvery is how often a monitor continues a registrar that may be stopped; silence is
// after what time it says that it waits.
const (
	awakeEvery = 100 * time.Millisecond
	silence    = time.Second
)

// awaitRegistrar waits until the registrar of a killed monitor has ended. A stopped one
// would never end, so it is continued. What SIGCONT does not continue (a frozen cgroup, a
// debugger) is named in a notice and waited for until limit has passed.
func awaitRegistrar(book Book, limit time.Duration, notice func(string)) {
	var id omis.ProcID
	if known, err := book.Get(registrarKey, &id); !known || err != nil {
		return
	}
	fd, err := unix.PidfdOpen(id.PID, 0) // signals to it reach no later process of that number
	if err != nil {
		return
	}
	defer unix.Close(fd)
	began := time.Now()
	told, awake := false, began
	for proc.Alive(id) == nil {
		waited := time.Since(began)
		if waited > limit {
			notice(fmt.Sprintf("process %d, which sets uprobes for the former gateway, has not ended in %v: going on without it; uprobes that it holds may stand until it ends (is it frozen, or held by a debugger?)", id.PID, limit))
			return
		}
		if time.Since(awake) > awakeEvery {
			awake = time.Now()
			_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) // it may have ended
		}
		if !told && waited > silence {
			told = true
			notice(fmt.Sprintf("waiting up to %v for process %d, which sets uprobes for the former gateway, to end", limit, id.PID))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// dismissRegistrar lets the registrar go.
func (p *Placer) dismissRegistrar() error {
	p.uprobes.Close()
	if p.heir.data == "" {
		return nil
	}
	return p.heir.book.Delete(registrarKey)
}

// Registrar is the process that sets uprobes, 0 while there is none.
func (p *Placer) Registrar() int { return p.uprobes.PID() }
