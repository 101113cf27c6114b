package deliver

import (
	"fmt"
	"os"
	"syscall"
)

// Open opens a regular file to read, with the rights of a user.
func Open(u User, path string) (*os.File, error) {
	return as(u, func() (*os.File, error) {
		// A pipe without a writer must not block, and a device must not be opened at all.
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, fmt.Errorf("%s is not a regular file", path)
		}
		return f, nil
	}, func(f *os.File) { f.Close() })
}
