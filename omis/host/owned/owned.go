package owned

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Unsafe is the error for a directory or file that another user controls.
type Unsafe struct {
	Path   string
	Reason string // the problem, and what to do
}

func (e *Unsafe) Error() string { return e.Path + " " + e.Reason }

const (
	mostLinks = 40 // the kernel's limit
	written   = 0o022
	groupBit  = 0o020
	otherBit  = 0o002
)

// Directory ensures that a directory belongs to this process's user and that no other
// user can write to it, replace it, or redirect the path to it. It creates missing
// components of the path, accessible only to this user. It returns the path without
// symbolic links.
func Directory(path string) (string, error) {
	at, err := walk(path, true)
	if err != nil {
		return "", err
	}
	return at, private(at)
}

// Existing does what Directory does, for a directory that must exist.
func Existing(path string) (string, error) {
	at, err := walk(path, false)
	if err != nil {
		return "", err
	}
	return at, private(at)
}

// Shared ensures that no other user can replace what this process's user creates in a
// directory: others may write to the directory only if it has the sticky bit, as /tmp
// does. It creates missing components of the path, readable for all users.
func Shared(path string) error {
	_, err := walkBy(path, true, 0o755, uids{os.Geteuid(): true, 0: true})
	return err
}

// Trusted ensures that a directory exists in which only the listed users and root can
// replace their files.
func Trusted(path string, users ...int) error {
	trusted := uids{0: true}
	for _, uid := range users {
		trusted[uid] = true
	}
	_, err := walkBy(path, false, 0, trusted)
	return err
}

// private checks the last directory of a path that walk has followed.
func private(path string) error {
	st, err := lstat(path)
	if err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return &Unsafe{path, fmt.Sprintf("belongs to %s, who could change what is read from it: choose a directory that does not exist yet, or one that belongs to %s alone", userName(int(st.Uid)), userName(os.Geteuid()))}
	}
	if st.Mode&written != 0 {
		return &Unsafe{path, fmt.Sprintf("can be written to by other users (mode %04o): choose another directory, or make sure that other users have not put files there and run \"chmod go-w %s\"", st.Mode&0o7777, path)}
	}
	return nil
}

type uids map[int]bool

func walk(path string, create bool) (string, error) {
	return walkBy(path, create, 0o700, uids{os.Geteuid(): true, 0: true})
}

// walkBy follows a path and checks each component. A component is safe if its owner is
// trusted and no other user can rename or replace its entries. As walkBy looks up each
// component in a safe one, the check has no race.
func walkBy(path string, create bool, mode fs.FileMode, trusted uids) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at := "/"
	if err := safe(at, trusted); err != nil {
		return "", err
	}
	rest, links := split(absolute), 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		st, err := lstat(next)
		if errors.Is(err, fs.ErrNotExist) && create {
			if err := os.Mkdir(next, mode); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err
			}
			st, err = lstat(next)
		}
		if err != nil {
			return "", err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			if links++; links > mostLinks {
				return "", &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
			}
			if !trusted[int(st.Uid)] {
				return "", &Unsafe{next, fmt.Sprintf("is a symbolic link of %s, who could redirect it: choose another directory", userName(int(st.Uid)))}
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(split(target), rest...)
			continue
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return "", &fs.PathError{Op: "open", Path: next, Err: unix.ENOTDIR}
		}
		if err := safe(next, trusted); err != nil {
			return "", err
		}
		at = next
	}
	return at, nil
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// safe checks a directory on a path.
func safe(path string, trusted uids) error {
	st, err := lstat(path)
	if err != nil {
		return err
	}
	if !trusted[int(st.Uid)] {
		return &Unsafe{path, fmt.Sprintf("belongs to %s, who could replace what is in it: choose another directory", userName(int(st.Uid)))}
	}
	// By convention a group with the same number as its user has no other members.
	byGroup := st.Mode&groupBit != 0 && st.Gid != st.Uid
	if (byGroup || st.Mode&otherBit != 0) && st.Mode&unix.S_ISVTX == 0 {
		return &Unsafe{path, fmt.Sprintf("can be written to by other users (mode %04o), who could replace what is in it: choose another directory", st.Mode&0o7777)}
	}
	return nil
}

func lstat(path string) (st unix.Stat_t, err error) {
	if err := unix.Lstat(path, &st); err != nil {
		return st, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st, nil
}

// userName returns a user's name for a message.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// Open opens a regular file that belongs to this process's user and that no other user
// can write to. It follows no symbolic link in the last component, and never blocks.
func Open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags&^os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
	if errors.Is(err, unix.ELOOP) {
		return nil, &Unsafe{path, "is a symbolic link: remove it and start again"}
	}
	if err != nil {
		return nil, err
	}
	if err := checkFile(f); err != nil {
		f.Close()
		return nil, err
	}
	if flags&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func checkFile(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return &Unsafe{f.Name(), "is not a regular file: remove it and start again"}
	case int(st.Uid) != os.Geteuid():
		return &Unsafe{f.Name(), fmt.Sprintf("belongs to %s: remove it and start again", userName(int(st.Uid)))}
	case st.Mode&written != 0:
		return &Unsafe{f.Name(), fmt.Sprintf("can be written to by other users (mode %04o): remove it and start again", st.Mode&0o7777)}
	}
	return nil
}

// ReadFile reads a file that Open accepts.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
