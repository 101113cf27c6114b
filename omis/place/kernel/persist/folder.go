//go:build linux

package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// root is where Linux systems mount the BPF file system.
const root = "/sys/fs/bpf"

// house is the folder that contains all folders of this package.
const house = root + "/mirador"

// Each folder has two symbolic links. dataLink leads to the data directory. The text of ownerLink
// identifies the process that opened the folder last.
const (
	dataLink  = "data"
	ownerLink = "owner"
)

// Folder is the folder of a data directory in the BPF file system.
type Folder struct{ path string }

// Open opens the folder of a data directory, and makes it if there is none. The error says why nothing can
// outlive the monitor here.
func Open(data string) (*Folder, error) {
	f, err := Of(data)
	if err != nil {
		return nil, err
	}
	if err := Mount(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder in the file system for BPF: %w", err)
	}
	absolute, err := filepath.Abs(data)
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(absolute, f.Path(dataLink)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot write to the file system for BPF: %w", err)
	}
	if err := f.sign(); err != nil {
		return nil, fmt.Errorf("cannot write to the file system for BPF: %w", err)
	}
	return f, nil
}

// Of returns the folder of a data directory. The folder need not exist. It is found by the inode of the
// directory, so a copy of the directory has another folder.
func Of(data string) (*Folder, error) {
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", data, err)
	}
	return &Folder{fmt.Sprintf("%s/%x-%x", house, st.Dev, st.Ino)}, nil
}

// Mount mounts the BPF file system, unless the system has done so. The error says why nothing can outlive a
// monitor here.
func Mount() error {
	dir, err := os.Open(root)
	if err != nil {
		return fmt.Errorf("this machine has no place for the file system for BPF: %w", err)
	}
	defer dir.Close()
	// If two processes mounted it at the same time, the second mount would hide the files of the first.
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %s: %w", root, err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return fmt.Errorf("cannot look at %s: %w", root, err)
	}
	if st.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := unix.Mount("bpf", root, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RELATIME, "mode=0700"); err != nil {
		return fmt.Errorf("no file system for BPF is mounted at %s, and the monitor cannot mount it: %w", root, err)
	}
	return nil
}

// Path returns the path of an object, for its method Pin. Names must not contain dots.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Names lists the objects.
func (f *Folder) Names() []string {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil // there is no folder
	}
	var names []string
	for _, e := range entries {
		if e.Name() != dataLink && e.Name() != ownerLink {
			names = append(names, e.Name())
		}
	}
	return names
}

// Has reports whether an object exists.
func (f *Folder) Has(name string) bool { return slices.Contains(f.Names(), name) }

// Map opens a map.
func (f *Folder) Map(name string) (*ebpf.Map, error) { return ebpf.LoadPinnedMap(f.Path(name), nil) }

// Link opens a link.
func (f *Folder) Link(name string) (link.Link, error) { return link.LoadPinnedLink(f.Path(name), nil) }

// Remove removes an object. It passes a link to letGo, which closes it: when the last descriptor of a link
// is closed, its program does not run any more, but when its last file is removed, the kernel detaches it
// some time later.
func (f *Folder) Remove(name string, letGo func(link.Link) error) error {
	l, err := f.Link(name)
	if removed := os.Remove(f.Path(name)); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		if err == nil {
			l.Close() // the file still keeps the link
		}
		return removed
	}
	if err == nil {
		return letGo(l)
	}
	return nil
}

// Clear removes all objects and the folder.
func (f *Folder) Clear(letGo func(link.Link) error) error {
	var errs []error
	for _, name := range f.Names() {
		errs = append(errs, f.Remove(name, letGo))
	}
	for _, path := range []string{f.Path(ownerLink), f.Path(dataLink), f.path} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// All lists the folders of all data directories.
func All() []*Folder {
	entries, err := os.ReadDir(house)
	if err != nil {
		return nil // no monitor has ever pinned anything
	}
	var list []*Folder
	for _, e := range entries {
		list = append(list, &Folder{filepath.Join(house, e.Name())})
	}
	return list
}

// IsLost reports whether no monitor will open the folder again: the monitor that opened it last has
// ended, and its data directory was removed or replaced. A folder that was changed less than settled ago
// is not lost, because a monitor may be about to open it. A folder of a monitor in other namespaces is
// not lost either, because its paths and process ids have other meanings.
func (f *Folder) IsLost(settled time.Duration) bool {
	info, err := os.Stat(f.path)
	if err != nil || time.Since(info.ModTime()) < settled {
		return false
	}
	text, err := os.Readlink(f.Path(ownerLink))
	if err != nil {
		return false
	}
	var o owner
	if _, err := fmt.Sscan(text, &o.mounts, &o.pids, &o.id.PID, &o.id.Start); err != nil {
		return false
	}
	if self, err := newOwner(); err != nil || o.mounts != self.mounts || o.pids != self.pids || o.id != self.id && proc.Alive(o.id) == nil {
		return false
	}
	same, err := Of(f.Data())
	return err != nil && errors.Is(err, fs.ErrNotExist) || err == nil && *same != *f
}

// owner is the process that opened a folder last, and its namespaces.
type owner struct {
	mounts, pids string
	id           omis.ProcID
}

func newOwner() (o owner, err error) {
	if o.mounts, err = os.Readlink("/proc/self/ns/mnt"); err != nil {
		return o, err
	}
	if o.pids, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return o, err
	}
	o.id.PID = os.Getpid()
	o.id.Start, err = proc.ThreadStart(o.id.PID, o.id.PID)
	return o, err
}

// sign makes this process the owner.
func (f *Folder) sign() error {
	o, err := newOwner()
	if err != nil {
		return err
	}
	if err := os.Remove(f.Path(ownerLink)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(fmt.Sprintln(o.mounts, o.pids, o.id.PID, o.id.Start), f.Path(ownerLink))
}

// Data returns the path of the data directory when the folder was made.
func (f *Folder) Data() string {
	data, err := os.Readlink(f.Path(dataLink))
	if err != nil {
		return ""
	}
	return data
}
