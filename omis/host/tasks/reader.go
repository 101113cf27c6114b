//go:build linux

package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Reader reads threads and processes. Its methods may be called from any goroutine.
type Reader struct {
	buffers sync.Pool

	mu        sync.RWMutex  // held for reading by those who read
	threads   *ebpf.Program // nil when closed, as the next
	processes *ebpf.Program
}

// bufferSize is what the kernel gives in one piece at the most.
const bufferSize = 8 * 4096

// Open loads the programs, which takes some tens of milliseconds. The kernel runs
// them when somebody reads, and at no other time.
func Open() (*Reader, error) {
	if err := checkAccounting(nohzFull); err != nil {
		return nil, err
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("the kernel does not describe its types: %w", err)
	}
	threads, err := load(kernel, threadProgram)
	if err != nil {
		return nil, err
	}
	processes, err := load(kernel, processProgram)
	if err != nil {
		threads.Close()
		return nil, err
	}
	return &Reader{
		threads: threads, processes: processes,
		buffers: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }},
	}, nil
}

// load loads a program. Reading kernel memory is offered to those under the GPL alone.
func load(kernel *btf.Spec, assemble func(*btf.Spec) (asm.Instructions, error)) (*ebpf.Program, error) {
	code, err := assemble(kernel)
	if err != nil {
		return nil, err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "task", Instructions: code, License: "GPL",
	})
	if err != nil {
		return nil, fmt.Errorf("cannot load a task iterator: %w", err)
	}
	return p, nil
}

// nohzFull lists the processors without a timer's ticks, "(null)" for none.
const nohzFull = "/sys/devices/system/cpu/nohz_full"

// checkAccounting makes sure that times are counted by ticks: what runs on
// processors without any has part of its times in other places.
func checkAccounting(path string) error {
	b, err := os.ReadFile(path)
	if list := bytes.TrimSpace(b); err == nil && len(list) > 0 && string(list) != "(null)" {
		return fmt.Errorf("processors %s have no ticks", list)
	}
	return nil
}

// Close unloads the programs, when those who read are done.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	threads, processes := r.threads, r.processes
	r.threads, r.processes = nil, nil
	return errors.Join(threads.Close(), processes.Close())
}

// Read calls see with each thread of a process, the oldest first, up to about
// most. It may miss the later ones where one ends meanwhile. Whether the process
// is the right one is for the caller to make sure of afterwards.
func (r *Reader) Read(pid, most int, see func(*Task)) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := 0
	err := r.records(r.threads, pid, recordSize, func(record []byte) bool {
		t := parse(record)
		copy(t.Name[:], record[recordName:])
		see(&t)
		seen++
		return seen < most
	})
	if err != nil {
		return fmt.Errorf("cannot read the threads of process %d: %w", pid, err)
	}
	return nil
}

// records calls see with what a program writes about the threads of a process, or
// about all where pid is 0. What the kernel gives in one piece is seen to its end,
// then no more after see has said so.
func (r *Reader) records(program *ebpf.Program, pid, size int, see func(record []byte) bool) error {
	if program == nil {
		return os.ErrClosed
	}
	iterator, err := iterate(program, pid)
	if err != nil {
		return err
	}
	defer unix.Close(iterator)
	buf := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buf)
	for goOn := true; goOn; {
		n, err := unix.Read(iterator, (*buf)[:bufferSize/size*size])
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		case n%size != 0:
			return fmt.Errorf("%d bytes are no multiple of %d", n, size)
		}
		for records := (*buf)[:n]; len(records) > 0; records = records[size:] {
			goOn = see(records[:size])
		}
	}
	return nil
}

// iterate makes a descriptor that shows the threads of a process, or all there are.
// Which process is a matter of the link, so that each has its own.
func iterate(program *ebpf.Program, pid int) (int, error) {
	const create, createIterator = 28, 33 // BPF_LINK_CREATE, BPF_ITER_CREATE
	info := struct{ tid, pid, pidfd uint32 }{pid: uint32(pid)}
	link, err := bpf(create, unsafe.Pointer(&struct {
		program, target, attach, flags uint32
		info                           unsafe.Pointer
		size                           uint32
		_                              uint32
	}{
		program: uint32(program.FD()), attach: uint32(ebpf.AttachTraceIter),
		info: unsafe.Pointer(&info), size: uint32(unsafe.Sizeof(info)),
	}), 32)
	runtime.KeepAlive(&info)
	if err != nil {
		return -1, fmt.Errorf("cannot choose threads: %w", err)
	}
	defer unix.Close(link) // the iterator keeps what it needs of it
	iterator, err := bpf(createIterator, unsafe.Pointer(&struct{ link, flags uint32 }{link: uint32(link)}), 8)
	if err != nil {
		return -1, fmt.Errorf("cannot show threads: %w", err)
	}
	return iterator, nil
}

// bpf makes a system call; the descriptor it returns is closed on exec.
func bpf(command int, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
