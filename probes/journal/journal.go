// Package journal stores what a gateway needs in order to continue after it was killed: keys
// with values, in a file of the data directory.
//
// The file describes live processes, so it is valid only until the machine restarts. Therefore
// a record is safe as soon as the kernel has it, without waiting for a disk, and a journal of
// an earlier boot is treated as empty. Put and Delete return an error for a record that cannot
// be written, because the disk is full for instance; the journal writes it when there is room again.
//
// A record is a line with a checksum. An incomplete line, left by a kill during a write, is
// ignored. The directory is locked while the journal is open.
//
// The directory and its files must belong to this process's user, because they control the
// gateway. Of this module the package imports only omis/host/owned; probes and cli import it.
// A Journal may be used by several goroutines.
package journal

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/owned"
)

// File is the name of the journal in the data directory.
const File = "journal"

// Keys of the journal's own records: the boot of the machine to which the other records
// belong, and the id of the journal.
const (
	bootKey = "boot"
	idKey   = "id"
)

// Journal is an open journal.
type Journal struct {
	path   string
	lock   *os.File
	damage Damage

	mu      sync.Mutex
	file    *os.File
	size    int64 // of the file
	limit   int64 // a larger file is rewritten
	torn    bool  // the file ends with a part of a line, so nothing can be appended
	closed  bool
	values  map[string]json.RawMessage
	missing map[string]bool // keys whose new values or deletions are not in the file
	retry   *time.Timer     // calls flushLater; nil if no call is due
	buffer  []byte
}

// Open locks a data directory, and reads or creates its journal. If another gateway uses the
// directory, the error is an *InUse.
func Open(dir string) (*Journal, error) {
	dir, err := owned.Directory(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: filepath.Join(dir, File), lock: lock, values: make(map[string]json.RawMessage), missing: make(map[string]bool)}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// load reads the journal and rewrites it without outdated records.
func (j *Journal) load() error {
	text, err := owned.ReadFile(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the journal: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		r, ok := parse(line)
		switch {
		case !ok && !strings.HasSuffix(line, "\n"):
			j.damage.Cut = true
		case !ok:
			j.damage.Lines = append(j.damage.Lines, line)
		case r.Value == nil:
			delete(j.values, r.Key)
		default:
			j.values[r.Key] = r.Value
		}
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	// A damaged record of the boot does not invalidate the other records: they identify
	// processes by their start times.
	if j.values[bootKey] == nil && len(j.damage.Lines) > 0 && writtenSinceBoot(j.path) {
		j.values[bootKey] = boot
	}
	resumable := string(j.values[bootKey]) == string(boot) && j.values[idKey] != nil
	if string(j.values[bootKey]) != string(boot) {
		clear(j.values)
		j.damage = Damage{}
	}
	j.values[bootKey] = boot
	if j.values[idKey] == nil {
		j.values[idKey] = json.RawMessage(strconv.Quote(rand.Text()[:idLength]))
	}
	if len(j.damage.Lines) > 0 {
		j.damage.Copy, err = j.keepCopy(text)
	}
	if err == nil {
		err = j.rewrite()
	}
	if resumable && full(err) {
		return j.resume(text)
	}
	return err
}

// full reports whether an error says that there is no room on a disk.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// idLength makes it unlikely that two journals of a machine have the same id.
const idLength = 8

// ID returns the id that distinguishes this journal from all others.
func (j *Journal) ID() string {
	var id string
	_, _ = j.Get(idKey, &id) // load has written it
	return id
}

// bootID returns an identifier of the current boot of the machine.
func bootID() (json.RawMessage, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("cannot identify the current boot of the machine: %w", err)
	}
	return json.Marshal(strings.TrimSpace(string(text)))
}

// Damage describes the parts of the journal that could not be read.
func (j *Journal) Damage() Damage { return j.damage }

// Keys returns the sorted keys that begin with a prefix.
func (j *Journal) Keys(prefix string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var keys []string
	for key := range j.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Get reads a value, and returns false if there is none.
func (j *Journal) Get(key string, value any) (bool, error) {
	j.mu.Lock()
	raw, ok := j.values[key]
	j.mu.Unlock()
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return true, fmt.Errorf("cannot parse %s in the journal: %w", key, err)
	}
	return true, nil
}

// Put writes a value. After it returns without an error, the value survives this process.
// After an *Unwritten, the value survives as soon as the disk has room again.
func (j *Journal) Put(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return j.write(record{key, raw})
}

// Delete removes a value, if there is one.
func (j *Journal) Delete(key string) error { return j.write(record{Key: key}) }

// Update writes several values, and removes those that are nil, in one write to the file. It
// is Put and Delete for many keys. A json.RawMessage must be on one line.
func (j *Journal) Update(values map[string]any) error {
	records := make([]record, 0, len(values))
	for key, value := range values {
		r := record{Key: key}
		if value != nil {
			raw, ok := value.(json.RawMessage)
			if !ok {
				var err error
				if raw, err = json.Marshal(value); err != nil {
					return err
				}
			}
			r.Value = raw
		}
		records = append(records, r)
	}
	return j.write(records...)
}

// Close unlocks the directory. The file remains.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if j.retry != nil {
		j.retry.Stop()
	}
	var err error
	if len(j.missing) > 0 {
		err = j.append()
	}
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	return errors.Join(err, j.lock.Close())
}
