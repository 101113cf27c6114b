package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"mirador/omis/host/owned"
)

// record is a line: a key with its new value, or without one if it was deleted.
type record struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// line returns the record with its checksum in front.
func (r record) line() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(text), text), nil
}

// parse reads a line; ok is false if it is damaged or incomplete.
func parse(line string) (r record, ok bool) {
	text, whole := strings.CutSuffix(line, "\n")
	sum, text, cut := strings.Cut(text, " ")
	if !whole || !cut || sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) {
		return r, false
	}
	return r, json.Unmarshal([]byte(text), &r) == nil
}

// slack is how far the file may exceed twice its size after the last rewrite before write
// rewrites it. So outdated records cannot fill the disk.
const slack = 1 << 20

// write appends a record, after those that could not be written before. A record that
// cannot be written is kept until it can.
func (j *Journal) write(r record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return fmt.Errorf("cannot write to %s: %w", j.path, fs.ErrClosed)
	}
	if r.Value == nil {
		delete(j.values, r.Key)
	} else {
		j.values[r.Key] = r.Value
	}
	j.owed[r.Key] = true
	if err := j.pay(); err != nil {
		return &Unwritten{j, err}
	}
	return nil
}

// Unwritten says that records are not in the file yet.
type Unwritten struct {
	journal *Journal
	err     error
}

func (e *Unwritten) Error() string {
	return fmt.Sprintf("cannot write to %s (what is missing there is written when that is possible): %v", e.journal.path, e.err)
}

func (e *Unwritten) Unwrap() error { return e.err }

// Lasts reports whether records are still missing. It may be called from any goroutine.
func (e *Unwritten) Lasts() bool {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return len(e.journal.owed) > 0
}

// again is how long the journal waits until it tries again to write what it could not.
const again = 500 * time.Millisecond

// pay writes what the file lacks. The caller holds mu.
func (j *Journal) pay() error {
	err := j.append()
	if err == nil && j.size > j.limit {
		// What was appended is safe. The file stays as it is where there is no room for
		// another one; it is tried again when it has grown some more.
		if j.rewrite() != nil {
			j.limit = j.size + slack
		}
	}
	if err != nil && j.retry == nil {
		j.retry = time.AfterFunc(again, j.retries)
	}
	return err
}

// retries writes in the end what could not be written.
func (j *Journal) retries() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retry = nil
	if !j.closed {
		_ = j.pay() // whoever asked was told; on failure there is a next time
	}
}

// append writes the records that the file lacks at its end. A write that fails in its middle
// is undone: what is appended behind it would not be read. Where that fails as well, only
// another file helps.
func (j *Journal) append() error {
	if j.torn {
		return j.rewrite()
	}
	for _, key := range slices.Sorted(maps.Keys(j.owed)) {
		line, err := record{key, j.values[key]}.line()
		if err != nil {
			return err
		}
		if _, err := j.file.Write(line); err != nil {
			j.torn = j.file.Truncate(j.size) != nil
			return err
		}
		j.size += int64(len(line))
		delete(j.owed, key)
	}
	return nil
}

// rewrite replaces the journal by a file with the current records only. The caller holds mu,
// or is the only user.
func (j *Journal) rewrite() error {
	var all bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(j.values)) {
		line, err := record{key, j.values[key]}.line()
		if err != nil {
			return err
		}
		all.Write(line)
	}
	fresh := j.path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a gateway that was killed while writing it
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	if _, err = file.Write(all.Bytes()); err == nil {
		err = os.Rename(fresh, j.path)
	}
	if err != nil {
		file.Close()
		os.Remove(fresh) // it takes room that may be what is missing
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	j.begin(file, int64(all.Len()))
	return nil
}

// begin goes on with a file that holds all that counts.
func (j *Journal) begin(file *os.File, size int64) {
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size, j.limit, j.torn = file, size, 2*size+slack, false
	clear(j.owed)
}

// resume goes on with the file as it is, where there is no room for another one: lines that
// are cut short are cut off, the others stay, damaged ones too.
func (j *Journal) resume(text []byte) error {
	file, err := owned.Open(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	whole := int64(bytes.LastIndexByte(text, '\n') + 1)
	if err := file.Truncate(whole); err != nil {
		file.Close()
		return err
	}
	j.begin(file, whole)
	return nil
}
