package journal

import (
	"bytes"
	"cmp"
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

// appendLine appends the record with its checksum in front. The value was checked when it was
// put.
func (r record) appendLine(line []byte) ([]byte, error) {
	key, err := json.Marshal(r.Key)
	if err != nil {
		return line, err
	}
	const sum = len("00000000 ")
	from := len(line)
	line = append(line, "00000000 {\"key\":"...)
	line = append(line, key...)
	if r.Value != nil {
		line = append(append(line, ",\"value\":"...), r.Value...)
	}
	line = append(line, "}\n"...)
	copy(line[from:], fmt.Sprintf("%08x", crc32.ChecksumIEEE(line[from+sum:len(line)-1])))
	return line, nil
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

// write appends records together, after those that could not be written before. Records
// that cannot be written are kept until they can.
func (j *Journal) write(records ...record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return fmt.Errorf("cannot write to %s: %w", j.path, fs.ErrClosed)
	}
	for _, r := range records {
		if _, known := j.values[r.Key]; r.Value == nil && !known {
			continue
		}
		if r.Value == nil {
			delete(j.values, r.Key)
		} else {
			j.values[r.Key] = r.Value
		}
		j.missing[r.Key] = true
	}
	if err := j.flush(); err != nil {
		return &Unwritten{j, err}
	}
	return nil
}

// Unwritten reports that records are not in the file yet.
type Unwritten struct {
	journal *Journal
	err     error
}

func (e *Unwritten) Error() string {
	return fmt.Sprintf("cannot write to %s (the missing records are written as soon as possible): %v", e.journal.path, e.err)
}

func (e *Unwritten) Unwrap() error { return e.err }

// Lasts reports whether records are still missing. It may be called from any goroutine.
func (e *Unwritten) Lasts() bool {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return len(e.journal.missing) > 0
}

// retryDelay is the time after a failed write until the journal tries again.
const retryDelay = 500 * time.Millisecond

// flush writes the missing records to the file. The caller holds mu.
func (j *Journal) flush() error {
	err := j.append()
	if err == nil && j.size > j.limit {
		// The appended records are safe. If the disk has no room for a new file, the journal
		// keeps the old one, and tries again after that has grown by slack.
		if j.rewrite() != nil {
			j.limit = j.size + slack
		}
	}
	if err != nil && j.retry == nil {
		j.retry = time.AfterFunc(retryDelay, j.flushLater)
	}
	return err
}

// flushLater tries again after a failed write.
func (j *Journal) flushLater() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retry = nil
	if !j.closed {
		_ = j.flush() // write has reported the error; flush tries again after a failure
	}
}

// append appends the missing records to the file, all or none of them. It removes an
// incomplete record, because the records after that would not be read. If it cannot, the
// journal needs a new file.
func (j *Journal) append() error {
	if j.torn {
		return j.rewrite()
	}
	lines := j.buffer[:0]
	keys := slices.Sorted(maps.Keys(j.missing))
	// A SIGKILL may interrupt a long write. What replaces other values comes before their removal.
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(removal(j.values[a]), removal(j.values[b])) })
	for _, key := range keys {
		var err error
		if lines, err = (record{key, j.values[key]}).appendLine(lines); err != nil {
			return err
		}
	}
	if _, err := j.file.Write(lines); err != nil {
		j.torn = j.file.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(lines))
	clear(j.missing)
	if j.buffer = lines; cap(lines) > slack {
		j.buffer = nil
	}
	return nil
}

// removal returns 1 for a value that was removed, 0 for others.
func removal(value json.RawMessage) int {
	if value == nil {
		return 1
	}
	return 0
}

// rewrite replaces the journal by a file with the current records only. The caller holds mu,
// or is the only user.
func (j *Journal) rewrite() error {
	var all []byte
	for _, key := range slices.Sorted(maps.Keys(j.values)) {
		var err error
		if all, err = (record{key, j.values[key]}).appendLine(all); err != nil {
			return err
		}
	}
	fresh := j.path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a gateway that was killed while writing it
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	if _, err = file.Write(all); err == nil {
		err = os.Rename(fresh, j.path)
	}
	if err != nil {
		file.Close()
		os.Remove(fresh) // the disk may have no other free room
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	j.setFile(file, int64(len(all)))
	return nil
}

// setFile makes the journal use a file that contains all current records.
func (j *Journal) setFile(file *os.File, size int64) {
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size, j.limit, j.torn = file, size, 2*size+slack, false
	clear(j.missing)
}

// resume continues with the old file if the disk has no room for a new one. It removes an
// incomplete last line, and keeps damaged lines.
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
	j.setFile(file, whole)
	return nil
}
