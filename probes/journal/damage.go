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

// Damage describes the parts of a journal that Open could not read.
type Damage struct {
	// Cut reports whether the last line is incomplete, as after a kill during a write. The
	// write had not been confirmed yet.
	Cut   bool
	Lines []string // complete lines with a wrong checksum
	Copy  string   // the file with a copy of the journal; "" if Lines is empty
}

// keyInLine finds the key in a line with a wrong checksum.
var keyInLine = regexp.MustCompile(`"key":"([^"\\]{1,200})"`)

// Keys returns the keys of the damaged lines, "?" for unreadable ones. Their values are lost
// or outdated.
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

// mostCopies is the maximum number of copies of damaged journals.
const mostCopies = 5

// keepCopy copies the journal for a later inspection, before it is rewritten. It keeps only
// the newest copies.
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

// writtenSinceBoot reports whether a file was modified after the machine started.
func writtenSinceBoot(path string) bool {
	info, err := os.Stat(path)
	var up unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return false
	}
	return time.Since(info.ModTime()) < time.Duration(up.Nano())
}
