package calls

import "strings"

// FileKind selects system calls by the kind of file that their first argument, a descriptor,
// refers to; OnLock selects those of futex that wait for a lock.
type FileKind string

const (
	AnyFile  FileKind = ""       // also calls whose first argument is no descriptor
	OnSocket FileKind = "socket" // write@socket
	OnFile   FileKind = "file"   // write@file: a regular file or a block device
	OnLock   FileKind = "lock"   // futex@lock
)

// Split separates the name of a system call in an event from the kind of file that its first
// argument must refer to.
func Split(name string) (call string, on FileKind) {
	for _, k := range []FileKind{OnSocket, OnFile, OnLock} {
		if call, ok := strings.CutSuffix(name, "@"+string(k)); ok {
			return call, k
		}
	}
	return name, AnyFile
}

// Types of files in the mode of an inode (S_IFMT and the types of inode(7)).
const (
	TypeMask    = 0o170000
	typeSocket  = 0o140000
	typeRegular = 0o100000
	typeBlock   = 0o060000
)

// Types returns the types of the files of the kind.
func (k FileKind) Types() []uint32 {
	switch k {
	case OnSocket:
		return []uint32{typeSocket}
	case OnFile:
		return []uint32{typeRegular, typeBlock}
	}
	return nil
}

// What futex is asked for, and the word of a lock. A thread waits for a lock if it asks the kernel to
// lock (with inheritance of priorities), or waits while the word is Contended: the mutexes of glibc,
// musl's own locks and those of Rust and Go have this value while a thread holds them and others
// wait. The words of conditions and semaphores have other values, except by chance.
const (
	CommandOfFutex = 127 // the other bits are flags
	FutexWait      = 0
	FutexWaitBits  = 9
	FutexLockPI    = 6
	FutexLockPI2   = 13
	Contended      = 2
)

// WaitsForLock reports whether a call of futex with these arguments waits for a lock.
func WaitsForLock(op, word uint64) bool {
	switch op & CommandOfFutex {
	case FutexLockPI, FutexLockPI2:
		return true
	case FutexWait, FutexWaitBits:
		return uint32(word) == Contended
	}
	return false
}
