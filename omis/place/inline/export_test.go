//go:build linux && amd64

package inline

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"mirador/omis/program"
)

// Taken returns the number of slots that are taken in the process of a store.
func Taken(s program.Store) int {
	t := s.(*store).target
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meet()
	return len(t.known)
}

// Same returns the histogram of n intervals of equal length in ticks.
func Same(n int, ticks, tick uint64) program.Histogram {
	r := record{counts: make([]uint64, program.Buckets)}
	r.counts[program.BucketOf(ticks)] = uint64(n)
	each := program.Uint128{Lo: ticks}
	for range n {
		r.Sum, r.Squares = r.Sum.Add(each), r.Squares.Add(each.Times(ticks))
	}
	r.Count, r.Last, r.Min, r.Max = int64(n), ticks, ticks, ticks
	return spreadIn(&r, tick)
}

// Folder is a store whose records are added up again and again, in memory that outlives the process.
type Folder struct {
	*store
	begun, done *atomic.Uint64 // number of threads
}

// Words of the header that are not used otherwise.
const (
	folderBegun = 512
	FolderDone  = 520
)

// folderEnv makes a test's program a folder, which is killed.
const folderEnv = "MIRADOR_TEST_FOLDER"

const folderSize = 1 << 28

// OpenFolder opens a folder in a file, with the records that a killed one has left.
func OpenFolder(f *os.File) (*Folder, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, folderSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(b, 0)
	if err != nil {
		return nil, err
	}
	const entry = 5
	records, err := m.audit()
	if err != nil {
		return nil, err
	}
	s := &store{target: &target{memory: m}, kind: program.StoreHistograms, key: "kept", cell: cell{entry: entry}, past: records[entry]}
	return &Folder{s, m.word(folderBegun), m.word(FolderDone)}, nil
}

// Close unmaps the memory.
func (f *Folder) Close() error { return unix.Munmap(f.target.memory.bytes) }

// Totals returns the number of threads in the records, by rows and by buckets, and the least and the most
// that it may be: a killed folder may have been writing one more.
func (f *Folder) Totals() (threads, inBuckets, least, most uint64) {
	for _, r := range f.past {
		threads += uint64(r.Count)
		for _, n := range r.counts {
			inBuckets += n
		}
	}
	return threads, inBuckets, f.done.Load(), f.begun.Load()
}

// Count continues the folder after so many threads.
func (f *Folder) Count(threads uint64) {
	f.begun.Store(threads)
	f.done.Store(threads)
}

// Records returns the number of records, and how many records of the ledger are in use.
func (f *Folder) Records() (n, used int) {
	m := f.target.memory
	return len(f.past), m.records.most - m.records.room()
}

// fewEnded is how many threads keep records of their own.
const fewEnded = 5

// step ends a thread, and adds up if there are many records.
func (f *Folder) step() error {
	if err := f.tell(); err != nil || len(f.past) <= 2*fewEnded {
		return err
	}
	return f.fold(fewEnded, nil)
}

// tell writes the record of a thread.
func (f *Folder) tell() error {
	m := f.target.memory
	n := f.begun.Add(1)
	m.serial++
	r := record{taken: 1000 + n, serial: m.serial, counts: make([]uint64, program.Buckets)}
	r.TID, r.Count, r.Min, r.Max, r.Sum.Lo = 1, 1, n, n, n
	r.counts[n%program.Buckets] = 1
	if err := m.enterRecord(f.cell.entry, &r); err != nil {
		return err
	}
	f.past = append(f.past, r)
	f.done.Add(1)
	return nil
}

// Add ends threads without adding up.
func (f *Folder) Add(threads int) error {
	for range threads {
		if err := f.tell(); err != nil {
			return err
		}
	}
	return nil
}

// FoldPartly adds up records, and is killed when it has deleted some of them.
func (f *Folder) FoldPartly(records, struck int) error {
	sum := sumOf(f.past[:records])
	err := f.target.memory.enterRecord(f.cell.entry, &sum)
	for i := range f.past[:struck] {
		f.target.memory.strike(&f.past[i])
	}
	return err
}

// IsFolder runs as a folder, if the environment says so.
func IsFolder() bool {
	if os.Getenv(folderEnv) == "" {
		return false
	}
	f, err := OpenFolder(os.NewFile(3, "memory"))
	for err == nil {
		err = f.step()
	}
	panic(err)
}

// FolderEnv returns the environment of a folder.
func FolderEnv() []string { return append(os.Environ(), folderEnv+"=1") }

// Interrupt puts the first thread of a store in the middle of counting an interval as long as its last one,
// after its bucket was incremented.
func Interrupt(s program.Store) {
	t := s.(*store).target
	t.mu.Lock()
	defer t.mu.Unlock()
	m, at := t.memory, t.memory.rowAt(t.known[0].slot, s.(*store).cell)
	m.word(at + rowBegun).Add(1)
	m.word(at + rowBuckets + 8*program.BucketOf(m.word(at+rowLast).Load())).Add(1)
}

// Coincide gives the slots of threads that arrive meanwhile the same tick, and moves their rows away when
// they have ended.
func Coincide(s program.Store, run func()) error {
	t := s.(*store).target
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meet()
	before := len(t.known)
	run()
	t.meet()
	for _, o := range t.known[before:] {
		o.first = t.known[before].first
		t.memory.word(t.memory.slotAt(o.slot) + slotFirst).Store(o.first)
	}
	return t.retire()
}

// PutOff moves the beginning of open intervals, of the first thread of a store and of goroutines, by a
// number of ticks.
func PutOff(s program.Store, ticks uint64) {
	t, c := s.(*store).target, s.(*store).cell
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meet()
	m := t.memory
	m.word(m.rowAt(t.known[0].slot, c) + c.open() + openFrom).Add(ticks)
	for at := m.goAt(); at < m.goAt()+m.goLevel(); at += goRowSize {
		if m.word(at+goKey).Load()>>goKeyBits == uint64(c.entry+1) {
			m.word(at + m.goLevel() + openFrom).Add(ticks)
		}
	}
}
