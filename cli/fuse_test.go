package cli

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Operations of the FUSE protocol (include/uapi/linux/fuse.h).
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetAttr     = 3
	fuseOpen        = 14
	fuseRead        = 15
	fuseStatFS      = 17
	fuseRelease     = 18
	fuseFlush       = 25
	fuseInit        = 26
	fuseInterrupt   = 36
	fuseBatchForget = 42
)

// fuse is a file system with one file. Its server can stop answering.
type fuse struct {
	fd      int
	content []byte
	abort   func()        // fails what was not answered, and unmounts
	hung    atomic.Uint32 // the operation that is not answered; 0: all are
}

// everything is the value of fuse.hung when no operation is answered.
const everything = math.MaxUint32

// mountFUSE mounts a file system with one file for all users.
func mountFUSE(t *testing.T, dir string, content []byte) *fuse {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &fuse{fd: fd, content: content}
	ended := make(chan struct{})
	if err := unix.Mount("mirador", dir, "fuse.mirador", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		f.serve()
	}()
	f.abort = sync.OnceFunc(func() {
		if err := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the FUSE server does not end")
		}
		unix.Close(fd)
	})
	t.Cleanup(f.abort)
	return f
}

// serve answers requests until the file system is unmounted.
func (f *fuse) serve() {
	request := make([]byte, 1<<17)
	for {
		n, err := unix.Read(f.fd, request)
		if err == unix.EINTR || err == unix.ENOENT || err == unix.EAGAIN {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		operation, id := binary.LittleEndian.Uint32(request[4:]), binary.LittleEndian.Uint64(request[8:])
		if hung := f.hung.Load(); hung == everything || hung == operation {
			continue
		}
		body, failure, answered := f.answer(operation, request[16:n])
		if !answered {
			continue
		}
		reply := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
		reply = binary.LittleEndian.AppendUint32(reply, uint32(-int32(failure)))
		reply = binary.LittleEndian.AppendUint64(reply, id)
		_, _ = unix.Write(f.fd, append(reply, body...)) // an error means that the caller was killed
	}
}

// answer returns the reply to a request, which begins with the number of a node.
func (f *fuse) answer(operation uint32, request []byte) (body []byte, failure unix.Errno, answered bool) {
	le := binary.LittleEndian
	node := le.Uint64(request)
	attributes := func(node uint64) []byte {
		b := make([]byte, 88)
		le.PutUint64(b, node)
		le.PutUint32(b[64:], 1)
		if node == 1 {
			le.PutUint32(b[60:], unix.S_IFDIR|0o755)
			return b
		}
		le.PutUint64(b[8:], uint64(len(f.content)))
		le.PutUint64(b[16:], uint64(len(f.content)+511)/512)
		le.PutUint32(b[60:], unix.S_IFREG|0o755)
		return b
	}
	switch operation {
	case fuseInit:
		b := make([]byte, 64)
		le.PutUint32(b, 7)
		le.PutUint32(b[4:], 31)
		le.PutUint32(b[20:], 1<<16)
		return b, 0, true
	case fuseLookup:
		b := make([]byte, 40)
		le.PutUint64(b, 2)
		return append(b, attributes(2)...), 0, true
	case fuseGetAttr:
		return append(make([]byte, 16), attributes(node)...), 0, true
	case fuseOpen:
		return make([]byte, 16), 0, true
	case fuseRead:
		at, size := le.Uint64(request[32:]), uint64(le.Uint32(request[40:]))
		at = min(at, uint64(len(f.content)))
		return f.content[at:min(at+size, uint64(len(f.content)))], 0, true
	case fuseStatFS:
		return make([]byte, 80), 0, true
	case fuseRelease, fuseFlush:
		return nil, 0, true
	case fuseForget, fuseBatchForget, fuseInterrupt:
		return nil, 0, false
	}
	return nil, unix.ENOSYS, true
}
