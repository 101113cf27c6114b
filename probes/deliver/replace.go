package deliver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replacement is a file to write as a whole.
type Replacement struct {
	URI  string
	Text []byte
	Mode fs.FileMode // permissions of a new file
}

// checkFile returns an error for a URI that names no file which may be written for a user.
func (all *Queues) checkFile(uri string, u User) error {
	a, err := ParseAddress(uri)
	switch {
	case err != nil:
		return err
	case a.url.Scheme != "file" || a.url.RawQuery != "":
		return fmt.Errorf("%q is no file: write file:///directory/name", uri)
	}
	return all.Check(a, u)
}

// Replace writes files with the rights of a user: first all of them under other names, which it changes then, so that
// no reader finds a part of a file. Only files of the user are replaced, and no part of a path may be a symbolic link.
func (all *Queues) Replace(u User, list []Replacement) (err error) {
	var written []*draft
	defer func() {
		for _, d := range written {
			d.close()
		}
	}()
	for _, r := range list {
		d, err := all.draft(r.URI, u)
		if err != nil {
			return err
		}
		written = append(written, d)
		if _, err = d.file.Write(r.Text); err == nil {
			err = d.file.Chmod(r.Mode.Perm())
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", d.path, err)
		}
	}
	for _, d := range written {
		if _, err := as(u, d.rename, func(struct{}) {}); err != nil {
			return fmt.Errorf("cannot write %s: %w", d.path, err)
		}
	}
	return nil
}

// CheckReplace returns an error for a file that cannot be written for a user. It writes it under another name to know.
func (all *Queues) CheckReplace(uri string, u User) error {
	d, err := all.draft(uri, u)
	if err == nil {
		d.close()
	}
	return err
}

// draft creates a file under another name than its own.
func (all *Queues) draft(uri string, u User) (*draft, error) {
	if err := all.checkFile(uri, u); err != nil {
		return nil, err
	}
	a, err := ParseAddress(uri)
	if err != nil {
		return nil, err
	}
	d := &draft{path: a.url.Path, user: u, temporary: ".mirador-" + rand.Text()}
	opened, err := as(u, d.open, func(files [2]*os.File) { files[0].Close(); files[1].Close() })
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", d.path, err)
	}
	d.dir, d.file = opened[0], opened[1]
	return d, nil
}

// draft is a file under another name.
type draft struct {
	path, temporary string
	user            User
	dir, file       *os.File
}

// open creates the file in its directory. It returns both.
func (d *draft) open() (files [2]*os.File, err error) {
	name := filepath.Dir(d.path)
	fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_RDONLY, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return files, errors.New("a part of the path is a symbolic link; give the path that it leads to")
	} else if err != nil {
		return files, err
	}
	files[0] = os.NewFile(uintptr(fd), name)
	if err = d.replaceable(fd); err == nil {
		fd, err = unix.Openat(fd, d.temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	}
	if err != nil {
		files[0].Close()
		return files, err
	}
	files[1] = os.NewFile(uintptr(fd), d.path)
	return files, nil
}

// replaceable checks what is in the place of the file.
func (d *draft) replaceable(dir int) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(dir, &system); err != nil {
		return err
	}
	if system.Type == unix.FUSE_SUPER_MAGIC {
		return errors.New("it is in a file system of another program (FUSE), which could hold the gateway up")
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, filepath.Base(d.path), &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("something is there that is no regular file")
	}
	if uid, err := d.user.uid(); err != nil || int(st.Uid) != uid {
		return fmt.Errorf("a file of user %d is there; only files of the user who asks are replaced", st.Uid)
	}
	return nil
}

func (d *draft) rename() (none struct{}, err error) {
	err = unix.Renameat(int(d.dir.Fd()), d.temporary, int(d.dir.Fd()), filepath.Base(d.path))
	if err == nil {
		d.temporary = ""
	}
	return none, err
}

// close removes the file if it has not got its name.
func (d *draft) close() {
	if d.temporary != "" {
		_, _ = as(d.user, func() (none struct{}, err error) { return none, unix.Unlinkat(int(d.dir.Fd()), d.temporary, 0) }, func(struct{}) {})
	}
	d.file.Close()
	d.dir.Close()
}
