package deliver

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// User is who requested a delivery. Files are opened with the rights of that user.
type User struct {
	// UID is -1 if the caller's connection does not tell it: over TCP.
	UID int `json:"uid"`
	// Trusted allows such a caller to use the rights of the gateway's user.
	Trusted bool `json:"trusted,omitempty"`
}

// uid returns the uid of the user whose rights are to be used.
func (u User) uid() (int, error) {
	own := os.Geteuid()
	switch {
	case u.UID == own || u.UID < 0 && u.Trusted:
		return own, nil
	case u.UID < 0:
		return 0, fmt.Errorf("the connection does not tell which user's rights are to be used: send the request over the gateway's Unix socket")
	case own != 0:
		return 0, fmt.Errorf("the gateway runs as user %d and cannot open files with the rights of user %d", own, u.UID)
	}
	return u.UID, nil
}

// as calls f with the rights of a user in file systems. It changes the identity of a thread
// that ends with f. Only the identity for file systems changes: with another real or
// effective user, that user could send the thread signals, which reach the whole gateway.
//
// A file system of the user may never answer. Then as returns an error after a while, and
// discard gets what f returns later.
func as[T any](u User, f func() (T, error), discard func(T)) (none T, err error) {
	uid, err := u.uid()
	if err != nil {
		return none, err
	}
	slots := slotsOf(uid)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
	case <-timer.C:
		return none, fmt.Errorf("%d files of user %d do not answer", cap(slots), uid)
	}
	type outcome struct {
		value T
		err   error
	}
	result := make(chan outcome)
	late := make(chan struct{})
	go func() {
		defer func() { <-slots }()
		var o outcome
		if uid != os.Geteuid() {
			runtime.LockOSThread() // without unlocking: the thread ends with this goroutine
			o.err = become(uid)
		}
		if o.err == nil {
			o.value, o.err = f()
		}
		select {
		case result <- o:
		case <-late:
			if o.err == nil {
				discard(o.value)
			}
		}
	}()
	select {
	case o := <-result:
		return o.value, o.err
	case <-timer.C:
		close(late)
		return none, fmt.Errorf("the file system does not answer within %v", patience)
	}
}

// patience is how long a file system may take to answer.
const patience = 5 * time.Second

// slots limits the threads with a user's rights, all of which a file system may hold up.
var slots struct {
	sync.Mutex
	of map[int]chan struct{} // by uid
}

const threads = 4

func slotsOf(uid int) chan struct{} {
	slots.Lock()
	defer slots.Unlock()
	if slots.of == nil {
		slots.of = make(map[int]chan struct{})
	}
	if slots.of[uid] == nil {
		slots.of[uid] = make(chan struct{}, threads)
	}
	return slots.of[uid]
}

// become sets the identity of the calling thread for file systems. The kernel takes the
// capabilities for files away with it.
func become(uid int) error {
	group, groups, err := groupsOf(uid)
	if err != nil {
		return err
	}
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return fmt.Errorf("cannot take the groups of user %d: %w", uid, errno)
	}
	for _, c := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETFSGID, group}, {unix.SYS_SETFSUID, uid}} {
		unix.RawSyscall(c.call, uintptr(c.id), 0, 0)
		// These calls report no errors. An invalid id changes nothing and returns the present one.
		if now, _, _ := unix.RawSyscall(c.call, ^uintptr(0), 0, 0); int(now) != c.id {
			return fmt.Errorf("cannot take the rights of user %d", uid)
		}
	}
	return nil
}

// groupsOf returns the groups of a user: the primary one and all. A user without an entry in
// the system's database has none but "nobody's".
func groupsOf(uid int) (primary int, all []uint32, err error) {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return overflowGroup, nil, nil
	}
	if primary, err = strconv.Atoi(u.Gid); err != nil {
		return 0, nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return primary, nil, nil
	}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return 0, nil, err
		}
		all = append(all, uint32(n))
	}
	return primary, all, nil
}

// overflowGroup is the group that Linux shows for ids without a meaning.
const overflowGroup = 65534
