//go:build linux && amd64

package inline_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// host is a process that runs code as functions of its own, and the node.Patcher that writes them.
type host struct {
	*subject.Subject
	t        testing.TB
	ID       omis.ProcID
	shared   []byte
	code     []byte
	base     uint64
	at, back uint64 // address of the code, and where checks continue
	tid      int32
	g        int32 // where a thread has its goroutine: an offset from its thread pointer
	funcs    map[uint64]*function
	body     []byte // of functions
	standing int
	goes     bool // its code is like Go code
	orphaned bool // the monitor has died
	deadly   bool // the monitor dies after its next change
}

var (
	_ node.Patcher = (*host)(nil)
	_ node.Ground  = (*host)(nil)
)

// function is what calls run: code at its beginning, a body, and code at its return.
type function struct{ begin, body, end []*point }

// point is a node.Patched.
type point struct {
	host  *host
	patch node.Patch
	flag  uint64
}

// Places of a function.
const (
	functionSize = 8192
	atBegin      = 0 // where a function begins
	atBody       = 1 // where the flags and the red zone are in use
	atEnd        = 2 // where it returns
)

const gigabyte = 1 << 30

// hostPath compiles the program of hosts, once for all tests. TestMain removes it.
var hostPath = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mirador-host-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "host")
	if msg, err := exec.Command("gcc", "-O2", "-g", "-pthread", "-o", path, "testdata/host.c").CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("gcc: %w\n%s", err, msg), os.RemoveAll(dir))
	}
	hostDir = dir
	return path, nil
})

var hostDir string // "": not compiled

// removeHost removes the program of hosts.
func removeHost() error {
	if hostDir == "" {
		return nil
	}
	return os.RemoveAll(hostDir)
}

// newHost starts a host with shared memory of a size.
func newHost(t testing.TB, size int) *host {
	t.Helper()
	path, err := hostPath()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{Subject: subject.Start(t, exec.Command(path, fmt.Sprint(size))), t: t, funcs: make(map[uint64]*function)}
	var shared, text int
	if _, err := fmt.Sscanf(h.Line(), "ready %d %d 0x%x 0x%x 0x%x %d %d", &shared, &text, &h.base, &h.at, &h.back, &h.tid, &h.g); err != nil {
		t.Fatal(err)
	}
	if h.ID, err = proc.Identify(h.PID); err != nil {
		t.Fatal(err)
	}
	h.shared, h.code = h.mapped(shared), h.mapped(text)
	return h
}

func (h *host) mapped(fd int) []byte {
	h.t.Helper()
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", h.PID, fd), os.O_RDWR, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			h.t.Error(err)
		}
	})
	return b
}

func (h *host) Ground(omis.ProcID) (node.Ground, error) { return h, nil }
func (h *host) Shared() []byte                          { return h.shared }
func (h *host) Base() uint64                            { return h.base }
func (h *host) TID() int32                              { return h.tid }
func (h *host) Self() bool                              { return true }
func (h *host) Gone() bool                              { return proc.Alive(h.ID) != nil }
func (h *host) Close() error                            { return nil }

// Left returns all patches that are installed, after a test has ended a monitor.
func (h *host) Left() (list []node.Patched) {
	if !h.orphaned {
		return nil
	}
	for _, f := range h.funcs {
		for _, points := range [][]*point{f.begin, f.body, f.end} {
			for _, p := range points {
				list = append(list, p)
			}
		}
	}
	return list
}

func (h *host) Survey(_ omis.ProcID, addrs []uint64) ([]string, []error) {
	return make([]string, len(addrs)), make([]error, len(addrs))
}

func (h *host) GoCode(_ omis.ProcID, addrs []uint64) []node.GoCode {
	list := make([]node.GoCode, len(addrs))
	for i := range list {
		list[i] = node.GoCode{In: h.goes, G: h.g, StackEnd: 8}
	}
	return list
}

func (h *host) Patch(_ omis.ProcID, list []node.Patch) ([]node.Patched, []error) {
	all, errs := make([]node.Patched, len(list)), make([]error, len(list))
	for i, patch := range list {
		p := &point{h, patch, uint64(h.standing)}
		h.standing++
		h.code[p.flag] = 0
		f := h.function(patch.Addr)
		*f.at(patch.Addr) = append(*f.at(patch.Addr), p)
		all[i], errs[i] = p, h.write(patch.Addr)
	}
	h.mayDie()
	return all, errs
}

func (h *host) Unpatch(_ omis.ProcID, list []node.Patched) error {
	for _, p := range list {
		addr := p.Addr()
		points := h.function(addr).at(addr)
		*points = slices.DeleteFunc(*points, func(other *point) bool { return other == p })
		if err := h.write(addr); err != nil {
			return err
		}
	}
	h.mayDie()
	return nil
}

// death is the panic that ends a monitor.
const death = "killed"

func (h *host) mayDie() {
	if h.deadly {
		h.deadly = false
		panic(death)
	}
}

func (p *point) Addr() uint64   { return p.patch.Addr }
func (p *point) Switch() uint64 { return p.host.at + p.flag }
func (p *point) Lingers() bool  { return false }

func (p *point) Covers(addr uint64) bool { return addr == p.patch.Addr }
func (p *point) Exclusive() string       { return "" }
func (p *point) Misses() string          { return "" }

func (p *point) SetActive(active bool) error {
	p.host.code[p.flag] = 0
	if active {
		p.host.code[p.flag] = 1
	}
	return nil
}

// function returns the function at an address; the first page has the switches.
func (h *host) function(addr uint64) *function {
	n := (addr - h.at) / functionSize
	if h.funcs[n] == nil {
		h.funcs[n] = &function{}
	}
	return h.funcs[n]
}

func (f *function) at(addr uint64) *[]*point {
	return map[uint64]*[]*point{atBegin: &f.begin, atBody: &f.body, atEnd: &f.end}[addr%8]
}

// write writes the function at an address. No thread may be in it.
func (h *host) write(addr uint64) error {
	f := h.function(addr)
	begin := (addr - h.at) / functionSize * functionSize
	at := begin
	for place, list := range [][]*point{f.begin, f.body, f.end} {
		if place == atEnd && h.body != nil {
			// The position of the body must not depend on the code before it.
			body := begin + functionSize/2
			d := body - at - 5
			copy(h.code[at:], []byte{0xe9, byte(d), byte(d >> 8), 0, 0}) // jmp
			at = body + uint64(copy(h.code[body:], h.body))
		}
		for _, p := range list {
			b, err := p.patch.Make(node.Spot{
				Addr: p.patch.Addr, Code: h.at + at, Switch: h.at + p.flag, Entry: place == atBegin, Return: place == atEnd,
			})
			if err != nil {
				return err
			}
			at += uint64(copy(h.code[at:], b))
		}
	}
	h.code[at] = 0xc3 // ret
	return nil
}

// place returns the offset of a point of a function.
func (h *host) place(function, where int) uint64 {
	return h.at + uint64(function*functionSize+where)
}

// do makes the host do something with a function.
func (h *host) do(what string, function int, args ...any) string {
	h.t.Helper()
	line := fmt.Sprint(what, " ", function*functionSize)
	for _, a := range args {
		line += fmt.Sprint(" ", a)
	}
	h.Tell("%s", line)
	return h.Line()
}

func newPlacer(t testing.TB, patcher node.Patcher) *inline.Placer {
	p := inline.New(patcher)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newStore(t testing.TB, p *inline.Placer, id omis.ProcID, kind program.StoreKind) program.Store {
	t.Helper()
	s, err := p.NewStore(id, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func place(t testing.TB, p *inline.Placer, w node.Watch, steps ...program.Op) program.Placed {
	t.Helper()
	w.Event = node.EventReachedAddr
	list, errs := p.Place([]program.Placing{{Watch: w, Program: steps}})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	t.Cleanup(func() {
		if err := p.Remove(list); err != nil {
			t.Error(err)
		}
	})
	list[0].SetActive(true)
	return list[0]
}

// watch returns the watch on a place of a function.
func (h *host) watch(function, where int) node.Watch {
	return node.Watch{Proc: h.ID, Addr: h.place(function, where)}
}

func rows(t testing.TB, s program.Store) []program.Row {
	t.Helper()
	list, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	return list
}
