package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/owned"
)

// LockFile is the name of the file that is locked while a gateway uses a directory.
const LockFile = "lock"

// InUse reports that another gateway uses a data directory.
type InUse struct{ Dir, By string }

func (e *InUse) Error() string {
	return fmt.Sprintf("another gateway (pid %s) uses %s: end it, or choose another directory with --data", e.By, e.Dir)
}

// dying is how long to wait for the lock of a killed gateway: the kernel releases its other
// resources first.
const dying = 2 * time.Second

// lockDir locks a directory until the file is closed.
func lockDir(dir string) (*os.File, error) {
	file, err := owned.Open(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(dying); ; time.Sleep(dying / 200) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return file, sign(file)
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			file.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", file.Name(), err)
		case time.Now().After(end):
			defer file.Close()
			return nil, &InUse{dir, signature(file)}
		}
	}
}

// Held reports whether a gateway uses a directory.
func Held(dir string) bool {
	// The directory may belong to another user, with a pipe in place of the file.
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer file.Close() // this also releases the lock
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// sign writes the pid of the lock's owner to the file. On a full disk the file stays empty; the
// lock is valid nevertheless.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.WriteAt(fmt.Append(nil, os.Getpid()), 0); !full(err) {
		return err
	}
	return nil
}

func signature(file *os.File) string {
	var text [20]byte
	n, _ := file.ReadAt(text[:], 0) // the file is shorter
	if n == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(text[:n]))
}
