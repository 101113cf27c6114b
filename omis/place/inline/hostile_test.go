//go:build linux && amd64

package inline

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// forged is the shared memory of a process, which the test writes to instead of the process. It is also the
// ground, the patcher, and the patches in the process.
type forged struct {
	bytes []byte
	id    omis.ProcID
	left  []node.Patched
	out   int // number of removed patches
}

// forgedPoint is an installed patch.
type forgedPoint struct{ addr, change uint64 }

func (p forgedPoint) Addr() uint64         { return p.addr }
func (p forgedPoint) Switch() uint64       { return p.change }
func (p forgedPoint) Covers(a uint64) bool { return a == p.addr }
func (forgedPoint) Lingers() bool          { return false }
func (forgedPoint) Exclusive() string      { return "" }
func (forgedPoint) Misses() string         { return "" }
func (forgedPoint) SetActive(bool) error   { return nil }

func (f *forged) Ground(omis.ProcID) (node.Ground, error) { return f, nil }
func (f *forged) Survey(_ omis.ProcID, addrs []uint64) ([]string, []error) {
	return make([]string, len(addrs)), make([]error, len(addrs))
}

func (f *forged) GoCode(_ omis.ProcID, addrs []uint64) []node.GoCode {
	return make([]node.GoCode, len(addrs))
}

func (f *forged) Patch(_ omis.ProcID, list []node.Patch) ([]node.Patched, []error) {
	made := make([]node.Patched, len(list))
	for i, p := range list {
		made[i] = forgedPoint{p.Addr, p.Addr + 1}
		if _, err := p.Make(node.Spot{Addr: p.Addr, Code: p.Addr + 64, Switch: p.Addr + 1}); err != nil {
			return made, []error{err}
		}
	}
	return made, make([]error, len(list))
}

func (f *forged) Unpatch(_ omis.ProcID, list []node.Patched) error {
	f.out += len(list)
	return nil
}

func (f *forged) Shared() []byte       { return f.bytes }
func (f *forged) Base() uint64         { return 1 << 40 }
func (f *forged) TID() int32           { return 720 }
func (f *forged) Self() bool           { return true }
func (f *forged) Gone() bool           { return false }
func (f *forged) Close() error         { return nil }
func (f *forged) Left() []node.Patched { return f.left }

const forgedSize = 1 << 28

func newForged(t testing.TB) *forged {
	t.Helper()
	b, err := unix.Mmap(-1, 0, forgedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	id, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return &forged{bytes: b, id: id}
}

// Keys of the stores that a former monitor has left.
var forgedKinds = map[string]program.StoreKind{
	"sums": program.StoreSums, "times": program.StoreIntervals, "spread": program.StoreHistograms, "trace": program.StoreTraces,
}

// leave fills the memory as a monitor leaves it: stores of all kinds, rows of a running thread, records
// of ended ones, and a program for one thread. It returns the offsets of words that are worth overwriting.
func (f *forged) leave(t testing.TB) (words []int) {
	t.Helper()
	if err := unix.Madvise(f.bytes, unix.MADV_REMOVE); err != nil {
		t.Fatal(err)
	}
	f.left = nil
	p := New(f)
	defer p.Close()
	stores := make(map[string]program.Store)
	for key, kind := range forgedKinds {
		s, err := p.Keep(f.id, kind, key)
		if err != nil {
			t.Fatal(err)
		}
		stores[key] = s
	}
	place := func(op program.Op) {
		w := node.Watch{Event: node.EventReachedAddr, Proc: f.id, Addr: uint64(0x1000 * (len(f.left) + 1)), Threads: []int{f.id.PID}}
		placed, errs := p.Place([]program.Placing{{Watch: w, Program: program.Program{op}}})
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		f.left = append(f.left, placed[0].(*placedType).patch)
	}
	place(program.Op{Do: program.OpAdd, Value: 1, Store: stores["sums"]})
	place(program.Op{Do: program.OpAdd, Value: 7, Store: stores["sums"]})
	place(program.Op{Do: program.OpTrace, Room: 100, Store: stores["trace"]})
	m := stores["sums"].(*store).target.memory
	const slot = 5
	m.word32(m.slotAt(slot) + slotTID).Store(uint32(f.id.PID))
	m.word(m.slotAt(slot) + slotFirst).Store(1 << 40)
	m.word32(claimsAt).Store(slot + 1)
	m.word(headerClaimed).Store(1)
	words = append(words, headerClaimed, headerGroups, headerLedger, headerSaid, headerCrowd, headerKinds, headerKinds+8, claimsAt)
	words = append(words, m.slotAt(slot), m.slotAt(slot)+slotFirst)
	for _, s := range stores {
		s := s.(*store)
		cells := s.cells()
		if s.notes.ring != nil {
			cells = append(cells, *s.notes.ring)
		}
		for _, c := range cells {
			for at := range 16 {
				m.word(m.rowAt(slot, c) + 8*at).Store(3)
				words = append(words, m.rowAt(slot, c)+8*at)
			}
			for at := 0; at < entrySize; at += 8 {
				words = append(words, entryAt(c.entry)+at)
			}
		}
		for n := range 4 {
			m.serial++
			r := record{taken: uint64(n), serial: m.serial}
			r.TID, r.Count, r.Min, r.Max, r.Sum.Lo = n, 3, 1, 1, 3
			if s.kind == program.StoreHistograms {
				r.counts = make([]uint64, program.Buckets)
				r.counts[1], r.counts[100] = 2, 1
			}
			if err := m.enterRecord(s.cell.entry, &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for at := range m.records.next * recordSize / 8 {
		words = append(words, m.ledgerAt()+8*at)
	}
	for at := range m.program.next * programSize / 8 {
		words = append(words, programsAt+8*at)
	}
	words = append(words, f.goroutines(m, stores)...)
	return append(words, filtersAt, filtersAt+8)
}

// goroutines fills the table of goroutines as Go code leaves it: a row with two open intervals for each
// timer. It returns the offsets of the words of these rows, and of the rows of the thread that are read
// together with them.
func (f *forged) goroutines(m *memory, stores map[string]program.Store) (words []int) {
	const slot, opened = 5, 2
	for _, s := range stores {
		c := s.(*store).cell
		if !c.kind.hasIntervals() {
			continue
		}
		key := m.goAt() + (c.entry+1)*goRowSize
		m.word(key + goKey).Store(uint64(c.entry+1)<<goKeyBits | 1<<20)
		m.word(key + goDepth).Store(uint64(opened * m.goLevel()))
		for n := range 1 + opened {
			for member := 0; member < goRowSize; member += 8 {
				words = append(words, key+n*m.goLevel()+member)
			}
		}
		m.word(m.away(slot, c)).Store(noneAway + opened)
		words = append(words, m.away(slot, c), m.away(slot, c)+openFrom-openSP)
	}
	return words
}

type placedType = placed

// hostileValue returns a value that may lead beyond something.
func hostileValue(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return r.Uint64()
	case 1:
		return 1 << r.IntN(64)
	case 2:
		return 1<<r.IntN(64) - 1
	}
	return uint64(r.IntN(40))<<32 | uint64(r.IntN(40))
}

// use does all that a monitor does with leftovers, and returns the errors.
func (f *forged) use(t testing.TB, meddle func()) string {
	t.Helper()
	p := New(f)
	defer p.Close()
	var said strings.Builder
	note := func(err error) {
		if err != nil {
			said.WriteString(err.Error() + "\n")
		}
	}
	var stores []program.Store
	for key, kind := range forgedKinds {
		s, err := p.Keep(f.id, kind, key)
		note(err)
		if s != nil {
			stores = append(stores, s)
		}
	}
	for _, s := range stores {
		w := node.Watch{Event: node.EventReachedAddr, Proc: f.id, Addr: 0x9000}
		if s.(*store).kind == program.StoreTraces {
			_, errs := p.Place([]program.Placing{{Watch: w, Program: program.Program{{Do: program.OpTrace, Room: 100, Store: s}}}})
			note(errs[0])
		}
	}
	_, err := p.Settle()
	note(err)
	for range 2 {
		for _, s := range stores {
			list, err := s.Rows()
			note(err)
			for _, r := range list {
				if r.Count < 0 || r.Open < -1<<50 || r.Unfinished < 0 || r.Skipped < 0 {
					t.Errorf("a row of %+v", r)
				}
			}
			histograms, err := s.(*store).Histograms()
			note(err)
			for _, h := range histograms {
				if h.Buckets.Count() > program.Buckets*mostCounted {
					t.Errorf("a histogram of %d", h.Buckets.Count())
				}
			}
			_, _, err = s.(*store).Take()
			note(err)
			s.Lost()
		}
		meddle()
		for _, other := range p.all() {
			note(other.attend())
		}
	}
	for _, s := range stores {
		note(s.Reset())
		note(s.Close())
	}
	return said.String()
}

// TestHostileMemory writes random values to all parts of the shared memory that the monitor reads, before
// the memory is adopted and while it is read. MIRADOR_TEST_ATTEMPTS asks for more attempts, with other
// random numbers.
func TestHostileMemory(t *testing.T) {
	attempts := 40
	if n, err := strconv.Atoi(os.Getenv("MIRADOR_TEST_ATTEMPTS")); err == nil {
		attempts = n
	}
	f := newForged(t)
	r := rand.New(rand.NewPCG(1, uint64(attempts)))
	for n := range attempts {
		words := f.leave(t)
		meddle := func() {
			for range 1 + r.IntN(4) {
				binary.LittleEndian.PutUint64(f.bytes[words[r.IntN(len(words))]:], hostileValue(r))
			}
		}
		meddle()
		if said := f.use(t, meddle); strings.Contains(said, "runtime error") {
			t.Fatalf("attempt %d: %s", n, said)
		}
	}
}

// FuzzHostileMemory is TestHostileMemory for writes that the fuzzer chooses: three bytes for the offset,
// eight for the value.
func FuzzHostileMemory(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0, 0, 1, 0xff, 0, 0, 0, 0, 1, 0, 0}, 3))
	f.Fuzz(func(t *testing.T, writes []byte) {
		m := newForged(t)
		words := m.leave(t)
		meddle := func() {
			for w := writes; len(w) >= 11; w = w[11:] {
				copy(m.bytes[words[(int(w[0])<<16|int(w[1])<<8|int(w[2]))%len(words)]:], w[3:11])
			}
		}
		meddle()
		if said := m.use(t, meddle); strings.Contains(said, "runtime error") {
			t.Fatal(said)
		}
	})
}

// TestHugeNumbersInTheHeader writes numbers into the header that could make the monitor read all of the
// memory, or fill its own.
func TestHugeNumbersInTheHeader(t *testing.T) {
	f := newForged(t)
	for at, name := range map[int]string{headerClaimed: "claims", headerGroups: "groups", headerLedger: "records", headerSaid: "programs"} {
		for _, v := range []uint64{1 << 16, 1 << 31, 1 << 40, 1<<64 - 1} {
			f.leave(t)
			binary.LittleEndian.PutUint64(f.bytes[at:], v)
			begin, before := time.Now(), f.resident(t)
			said := f.use(t, func() { binary.LittleEndian.PutUint64(f.bytes[at:], v/2) })
			if took, grown := time.Since(begin), f.resident(t)-before; took > 2*time.Second || grown > 1024 {
				t.Errorf("%s of %#x took %v, and %d pages of the shared memory", name, v, took, grown)
			}
			if strings.Contains(said, "runtime error") {
				t.Errorf("%s of %#x: %s", name, v, said)
			}
		}
	}
}

// resident returns how many pages the shared memory has.
func (f *forged) resident(t *testing.T) (n int) {
	t.Helper()
	m := &memory{bytes: f.bytes}
	in := make([]byte, len(f.bytes)/pageSize)
	if !m.resident(0, in) {
		t.Fatal("it is not known")
	}
	for _, b := range in {
		n += int(b & 1)
	}
	return n
}

// TestDamagedIsTakenAway checks that a monitor removes what it cannot trust, reports it, and measures the
// process from then on.
func TestDamagedIsTakenAway(t *testing.T) {
	f := newForged(t)
	f.leave(t)
	left := len(f.left)
	binary.LittleEndian.PutUint64(f.bytes[headerGroups:], 1<<40)
	p := New(f)
	defer p.Close()
	s, err := p.Keep(f.id, program.StoreSums, "sums")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if list, err := s.Rows(); len(list) != 0 || err != nil {
		t.Errorf("rows %v, %v", list, err)
	}
	orphans, err := p.Settle()
	if err != nil || len(orphans) != 1 || !strings.Contains(orphans[0].What, "groups") || f.out != left {
		t.Errorf("%d of %d patches were taken away, and said is %+v, %v", f.out, left, orphans, err)
	}
}

// TestFaultCostsItsTarget reads memory of a process that faults meanwhile.
func TestFaultCostsItsTarget(t *testing.T) {
	f, other := newForged(t), newForged(t)
	f.leave(t)
	p, q := New(f), New(other)
	defer p.Close()
	defer q.Close()
	s, err := p.Keep(f.id, program.StoreSums, "sums")
	if err != nil {
		t.Fatal(err)
	}
	healthy, err := q.Keep(f.id, program.StoreSums, "sums")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(f.bytes, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Rows(); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("memory that cannot be read tells %v", err)
		}
		time.Sleep(2 * attendEvery)
	}
	if _, err := healthy.Rows(); err != nil {
		t.Error(err)
	}
	if err := unix.Mprotect(f.bytes, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
}
