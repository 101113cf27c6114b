//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/host/sealed"
	"mirador/omis/node"
)

// Shared is memory that a process shares with the monitor.
type Shared struct {
	Bytes []byte // the monitor's mapping
	Base  uint64 // address in the process
	file  int    // descriptor of the memory
}

// sizes are tried in this order, because limits of the process may refuse the larger ones.
var sizes = [...]uint64{1 << 38, 1 << 36, 1 << 34, 1 << 32, 1 << 30, 1 << 28, 1 << 26, 1 << 24, 1 << 22, 1 << 20}

// lockedSize is the size for processes that lock all their memory, where the whole size is resident.
const lockedSize = 1 << 22

// limitDivisor is the divisor for the address space that a process may use (RLIMIT_AS): we take at most
// this part, because the process may need the rest.
const limitDivisor = 8

// sharedName is the name of the mappings in the process.
const sharedName = "mirador patches"

// Share makes a stopped process map memory of a new file that has no name in any folder. Share
// closes the descriptor in the process.
func Share(process Process, pid int, mapped proc.Mappings) (*Shared, error) {
	fd, err := process.CallOn(sharedName, unix.SYS_MEMFD_CREATE, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	if fd < 0 {
		return nil, refused("memfd_create", fd)
	}
	s, err := shareFile(process, pid, uint64(fd), mapped)
	if e := succeeds(process, "close", unix.SYS_CLOSE, uint64(fd)); err == nil && e != nil {
		s.Close()
		return nil, e
	}
	return s, err
}

func shareFile(process Process, pid int, fd uint64, mapped proc.Mappings) (*Shared, error) {
	f, err := sealed.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := sealed.Fresh(f); err != nil {
		return nil, err
	}
	most, err := allowed(process, pid, f, fd)
	if err != nil {
		return nil, err
	}
	for _, size := range sizes {
		if size > most {
			continue
		}
		base, err := mapThere(process, f, fd, size, farAddress(mapped, size))
		if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EFBIG) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The seals keep the process from truncating the memory.
		if err := sealed.Seal(f, int64(size)); err != nil {
			return nil, err
		}
		return mapHere(f, base, size)
	}
	return nil, refused("mmap", -int64(unix.ENOMEM))
}

// allowed returns the largest size that the process may share. It makes the process map a page,
// because only then the kernel shows whether the process locks all its mappings. The page also
// receives the answer to whether the process may read the time stamp counter, which our code does.
func allowed(process Process, pid int, f *os.File, fd uint64) (most uint64, err error) {
	at, err := mapThere(process, f, fd, pageSize, 0)
	if err != nil {
		return 0, err
	}
	s, err := proc.ReadStatus(pid)
	if err != nil {
		return 0, err
	}
	limit, err := proc.AddressSpace(pid)
	if err != nil {
		return 0, err
	}
	if err := succeeds(process, "prctl", unix.SYS_PRCTL, unix.PR_GET_TSC, at); err != nil {
		return 0, err
	}
	var tsc [4]byte
	if _, err := f.ReadAt(tsc[:], 0); err != nil {
		return 0, err
	}
	if err := succeeds(process, "munmap", unix.SYS_MUNMAP, at, pageSize); err != nil {
		return 0, err
	}
	switch used := uint64(s.Memory); {
	case tsc[0] != unix.PR_TSC_ENABLE:
		return 0, errors.New("the process has forbidden itself to read the time stamp counter")
	case s.Locked > 0:
		most = lockedSize
	case limit == proc.Unlimited:
		most = sizes[0]
	case limit > used:
		most = (limit - used) / limitDivisor
	}
	return most, f.Truncate(0) // removes the page's content
}

// farAddress returns an address with enough free space, far from other mappings, because space near code
// is for arenas; 0 if there is none.
func farAddress(mapped proc.Mappings, size uint64) uint64 {
	var best, room uint64
	for i := 1; i < len(mapped); i++ {
		begin, end := mapped[i-1].End, mapped[i].Start
		if end > begin && end-begin > max(room, size+4*reach) && mapped[i].Path != "[vsyscall]" {
			best, room = (begin+(end-begin-size)/2)&^(pageSize-1), end-begin
		}
	}
	return best
}

// mapThere maps the file in the process, at the given address if it is still free, and excludes the
// mapping from core dumps.
func mapThere(process Process, f *os.File, fd, size, at uint64) (uint64, error) {
	if err := f.Truncate(int64(size)); err != nil {
		return 0, err
	}
	r, err := process.Call(unix.SYS_MMAP, at, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE, fd, 0)
	if err != nil {
		return 0, err
	}
	if r < 0 && r > -pageSize {
		return 0, refused("mmap", r)
	}
	if size > node.NobodysPage {
		// If a program locks all its memory (mlockall), the kernel allocates the whole mapping, up
		// to a page that cannot be allocated. Before Linux 6.15 there is no such page.
		_, err = process.Call(unix.SYS_MADVISE, uint64(r)+node.NobodysPage, pageSize, guardInstall)
	}
	if err == nil {
		err = succeeds(process, "madvise", unix.SYS_MADVISE, uint64(r), size, unix.MADV_DONTDUMP)
	}
	return uint64(r), err
}

// guardInstall is MADV_GUARD_INSTALL, which golang.org/x/sys/unix does not define.
const guardInstall = 102

// ErrInUse reports that another living monitor shares the memory.
var ErrInUse = errors.New("another monitor has put code into the process")

// mapHere maps the memory in the monitor and locks its file. The kernel releases the lock when the
// monitor unmaps the memory or dies. Two monitors would assign the same memory to different things.
func mapHere(f *os.File, base, size uint64) (*Shared, error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, ErrInUse
	case err != nil:
		return nil, fmt.Errorf("cannot lock the shared memory: %w", err)
	}
	if err := sealed.Check(f, int64(size)); err != nil {
		return nil, err
	}
	file, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		unix.Close(file)
		return nil, fmt.Errorf("cannot map the shared memory: %w", err)
	}
	_ = unix.Madvise(b, unix.MADV_DONTDUMP) // an error would only make dumps larger
	return &Shared{b, base, file}, nil
}

// Reopen maps in the monitor the memory that a process shares already, if the memory has the
// properties that Share gave it.
func Reopen(pid int, m proc.Mapping) (*Shared, error) {
	if !slices.Contains(sizes[:], m.End-m.Start) {
		return nil, fmt.Errorf("no monitor shares %d bytes with a process", m.End-m.Start)
	}
	f, err := sealed.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapHere(f, m.Start, m.End-m.Start)
}

// NextData returns the bounds of the first part of the memory at or after from that was ever
// written; ok is false if there is none.
func (s *Shared) NextData(from int) (begin, end int, ok bool) {
	first, err := unix.Seek(s.file, int64(from), unix.SEEK_DATA)
	if err != nil {
		return 0, 0, false
	}
	last, err := unix.Seek(s.file, first, unix.SEEK_HOLE)
	if err != nil {
		last = int64(len(s.Bytes))
	}
	return int(first), int(last), true
}

// Close unmaps the monitor's mapping, which must not be used afterwards. Close may be called again.
func (s *Shared) Close() error {
	if s.Bytes == nil {
		return nil
	}
	err := errors.Join(unix.Munmap(s.Bytes), unix.Close(s.file))
	s.Bytes = nil
	return err
}
