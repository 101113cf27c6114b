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

// InUse says that another gateway uses a data directory.
type InUse struct{ Dir, By string }

func (e *InUse) Error() string {
	return fmt.Sprintf("another gateway (pid %s) uses %s: end it, or choose another directory with --data", e.By, e.Dir)
}

// dying is how long a gateway that was killed may take to let go of its lock: the
// kernel gives back everything it had before.
const dying = 2 * time.Second

// lockDir locks a directory for as long as the file is open.
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

// Held tells whether a gateway uses a directory.
func Held(dir string) bool {
	// It may be a directory of another user, with a pipe in it.
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer file.Close() // and with it the lock
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// sign says who has the lock.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(fmt.Append(nil, os.Getpid()), 0)
	return err
}

func signature(file *os.File) string {
	var text [20]byte
	n, _ := file.ReadAt(text[:], 0) // it is shorter
	return strings.TrimSpace(string(text[:n]))
}
