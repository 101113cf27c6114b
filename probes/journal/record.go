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

// write appends a record. It removes an incomplete record after an error, because records
// after it would not be read.
func (j *Journal) write(r record) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return fmt.Errorf("cannot write to %s: %w", j.path, j.broken)
	}
	if _, err := j.file.Write(line); err != nil {
		j.broken = j.file.Truncate(j.size)
		return fmt.Errorf("cannot write to %s: %w", j.path, err)
	}
	j.size += int64(len(line))
	if r.Value == nil {
		delete(j.values, r.Key)
	} else {
		j.values[r.Key] = r.Value
	}
	if j.size > 2*j.slim+slack {
		return j.rewrite()
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
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size = file, int64(all.Len())
	j.slim = j.size
	return nil
}
