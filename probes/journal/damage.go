package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Damage is what of a journal could not be read when it was opened.
type Damage struct {
	// Cut reports whether the last line has no end, as after a kill in the middle of a
	// write. Nobody was told yet that it was written.
	Cut   bool
	Lines []string // those that are whole, but not as they were written
	Copy  string   // the file that the journal was copied to; "" if Lines is empty
}

// keyInLine finds the key in a line whose checksum is wrong.
var keyInLine = regexp.MustCompile(`"key":"([^"\\]{1,200})"`)

// Keys lists the keys of the damaged lines as far as they can be read; "?" stands for
// others. Their values are lost, or are older ones.
func (d Damage) Keys() []string {
	var keys []string
	for _, line := range d.Lines {
		key := "?"
		if m := keyInLine.FindStringSubmatch(line); m != nil {
			key = m[1]
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// mostCopies is how many copies of damaged journals are kept.
const mostCopies = 5

// keepCopy copies a journal, before it is written anew, for somebody to look at. The
// newest copies are kept.
func (j *Journal) keepCopy(text []byte) (string, error) {
	name := func(n int) string { return fmt.Sprintf("%s.damaged-%d", j.path, n) }
	for n := mostCopies - 1; n >= 1; n-- {
		if err := os.Rename(name(n), name(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot keep a copy of the damaged journal: %w", err)
		}
	}
	f, err := os.OpenFile(name(1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("cannot keep a copy of the damaged journal: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("cannot keep a copy of the damaged journal: %w", err)
	}
	return f.Name(), nil
}

// writtenSinceBoot reports whether a file was changed after the machine started.
func writtenSinceBoot(path string) bool {
	info, err := os.Stat(path)
	var up unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return false
	}
	return time.Since(info.ModTime()) < time.Duration(up.Nano())
}
