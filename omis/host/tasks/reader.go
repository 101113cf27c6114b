//go:build linux

package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"mirador/omis/host/tracepoint"
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

	mu        sync.RWMutex  // read-locked while a program is in use
	threads   *ebpf.Program // both nil when closed
	processes *ebpf.Program
}

// bufferSize is the most that the kernel returns in one read.
const bufferSize = 8 * 4096

// Open loads the programs, which takes some tens of milliseconds. The kernel runs them
// only when a caller reads.
func Open() (*Reader, error) {
	if err := checkAccounting(nohzFull); err != nil {
		return nil, err
	}
	kernel, err := tracepoint.KernelTypes().Kernel()
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

// load loads a program. The kernel lets only programs under the GPL read its memory.
func load(kernel *btf.Spec, assemble func(*btf.Spec) (asm.Instructions, error)) (*ebpf.Program, error) {
	code, err := assemble(kernel)
	if err != nil {
		return nil, err
	}
	p, err := tracepoint.Load(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "task", Instructions: code, License: "GPL",
	})
	if err != nil {
		return nil, fmt.Errorf("cannot load a task iterator: %w", err)
	}
	return p, nil
}

// nohzFull is the file that lists the processors without timer ticks; it contains
// "(null)" if there are none.
const nohzFull = "/sys/devices/system/cpu/nohz_full"

// checkAccounting returns an error if there are processors without ticks: the kernel
// keeps part of the times of their threads elsewhere.
func checkAccounting(path string) error {
	b, err := os.ReadFile(path)
	if list := bytes.TrimSpace(b); err == nil && len(list) > 0 && string(list) != "(null)" {
		return fmt.Errorf("processors %s have no ticks", list)
	}
	return nil
}

// Close unloads the programs when the current readers are done.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	threads, processes := r.threads, r.processes
	r.threads, r.processes = nil, nil
	return errors.Join(threads.Close(), processes.Close())
}

// Read calls see for each thread of a process, oldest first, until see has been called
// about most times. If a thread ends meanwhile, it may miss later ones. The caller must
// check afterwards that pid is still the same process.
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

// records calls see for each record that a program writes about the threads of a process,
// or about all if pid is 0. When see returns false, it finishes the records already read,
// and stops.
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

// iterate returns a descriptor that iterates over the threads of a process, or over all.
// The link selects the process, so each call makes its own.
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
		return -1, fmt.Errorf("cannot select the threads for a task iterator: %w", err)
	}
	defer unix.Close(link) // the iterator does not need the descriptor
	iterator, err := bpf(createIterator, unsafe.Pointer(&struct{ link, flags uint32 }{link: uint32(link)}), 8)
	if err != nil {
		return -1, fmt.Errorf("cannot start a task iterator: %w", err)
	}
	return iterator, nil
}

// bpf makes the system call bpf; the kernel marks the returned descriptor close-on-exec.
func bpf(command int, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
