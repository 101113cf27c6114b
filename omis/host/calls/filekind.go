package calls

import "strings"

// FileKind selects system calls by the kind of file that their first argument, a descriptor,
// refers to.
type FileKind string

const (
	AnyFile  FileKind = ""       // also calls whose first argument is no descriptor
	OnSocket FileKind = "socket" // write@socket
	OnFile   FileKind = "file"   // write@file: a regular file or a block device
)

// Split separates the name of a system call in an event from the kind of file that its first
// argument must refer to.
func Split(name string) (call string, on FileKind) {
	for _, k := range []FileKind{OnSocket, OnFile} {
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
