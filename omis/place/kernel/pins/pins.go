//go:build linux

// Package pins is where objects of the kernel stay when the monitor that made them is
// killed: each data directory has a folder of its own in the file system for BPF, in
// which they are files. An object lives as long as its file.
//
// Only omis/place/kernel and cli/doctor import it; of ours it imports omis/host/proc. A Folder
// belongs to whoever has locked its data directory.
package pins

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

// root is where the file system for BPF is mounted, by every system that does.
const root = "/sys/fs/bpf"

// house is the folder of all our folders.
const house = root + "/mirador"

// dataLink is a symbolic link in each folder to its data directory, ownerLink one whose
// text says which process opened the folder last.
const (
	dataLink  = "data"
	ownerLink = "owner"
)

// Folder is what a data directory has in the file system for BPF.
type Folder struct{ path string }

// Open makes the folder of a data directory, if there is none. The error says why
// nothing can outlive the monitor here.
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

// Of is the folder of a data directory, which need not be there. It belongs to the
// directory itself, whatever its name is: a copy has another one.
func Of(data string) (*Folder, error) {
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", data, err)
	}
	return &Folder{fmt.Sprintf("%s/%x-%x", house, st.Dev, st.Ino)}, nil
}

// Mount mounts the file system for BPF where it is not, as most systems do when they
// start. The error says why nothing can outlive a monitor here.
func Mount() error {
	dir, err := os.Open(root)
	if err != nil {
		return fmt.Errorf("this machine has no place for the file system for BPF: %w", err)
	}
	defer dir.Close()
	// Of two that mount at the same time one would hide what the other has put there.
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

// Path is the file of an object, to be handed to its method Pin. A name must have no
// dot.
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

// Has tells whether there is an object.
func (f *Folder) Has(name string) bool { return slices.Contains(f.Names(), name) }

// Map opens a map.
func (f *Folder) Map(name string) (*ebpf.Map, error) { return ebpf.LoadPinnedMap(f.Path(name), nil) }

// Link opens a link.
func (f *Folder) Link(name string) (link.Link, error) { return link.LoadPinnedLink(f.Path(name), nil) }

// Remove lets go of an object. A link, which may be the last that keeps it, goes to
// letGo: when that has closed it, its program does not run any more. The kernel takes
// what a file held out later, what a descriptor held at once.
func (f *Folder) Remove(name string, letGo func(link.Link) error) error {
	l, err := f.Link(name)
	if removed := os.Remove(f.Path(name)); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		if err == nil {
			l.Close() // its file keeps it
		}
		return removed
	}
	if err == nil {
		return letGo(l)
	}
	return nil
}

// Clear removes everything, and the folder.
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
		return nil // nothing was ever kept
	}
	var list []*Folder
	for _, e := range entries {
		list = append(list, &Folder{filepath.Join(house, e.Name())})
	}
	return list
}

// IsLost reports whether no monitor will take the folder over: the monitor that opened it
// last has ended, and its data directory does not exist any more, or another one has its
// name. A folder that changed less than settled ago is not lost: a monitor may be about to
// open it. Nor is one of a monitor in another namespace, whose paths and processes are
// others.
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

// sign notes who has opened the folder.
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

// Data is the data directory as it was called when the folder was made.
func (f *Folder) Data() string {
	data, err := os.Readlink(f.Path(dataLink))
	if err != nil {
		return ""
	}
	return data
}
