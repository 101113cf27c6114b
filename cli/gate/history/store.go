// Package history keeps what gates have measured, commit by commit, and finds where values changed.
// It starts no programs and no goroutines. The gate and the command line import it.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mirador/cli/gate/recorded"
	"mirador/cli/gate/request"
)

// About says when, for which commit and on which machine an entry of the history was measured.
type About struct {
	Time    time.Time         `json:"time"`
	Commit  string            `json:"commit"`
	Labels  map[string]string `json:"labels,omitempty"`
	Machine string            `json:"machine"` // see Fingerprint
}

// Entry is one run of a gate.
type Entry struct {
	About
	Gate   *request.File
	Values *recorded.Values
}

// An entry is a directory with three files.
const (
	aboutFile  = "about.json"
	gateFile   = "gate.xml"
	valuesFile = "values.xml" // measurement documents, one of each run
)

// mostEntries is the largest number of entries that are read: the latest ones.
const mostEntries = 300

// Add adds an entry. gate is the text of the gate file; parsed is the same file, as Parse returned it.
func Add(dir string, about About, gate []byte, parsed *request.File, values *recorded.Values) error {
	var documents, text bytes.Buffer
	if err := values.WriteDocuments(&documents, parsed); err != nil {
		return err
	}
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(about); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot keep the history: %w", err)
	}
	// Other readers of the history see the entry only when it is complete.
	part, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return fmt.Errorf("cannot keep the history: %w", err)
	}
	defer os.RemoveAll(part)
	for name, content := range map[string][]byte{aboutFile: text.Bytes(), gateFile: gate, valuesFile: documents.Bytes()} {
		if err := os.WriteFile(filepath.Join(part, name), content, 0o666); err != nil {
			return fmt.Errorf("cannot keep the history: %w", err)
		}
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("cannot keep the history: %w", err)
	}
	name := about.Time.UTC().Format("20060102T150405.000000Z") + "-" + short(about.Commit)
	return os.Rename(part, filepath.Join(dir, name))
}

// short returns the first letters and digits of a hash, as part of the name of a directory.
func short(commit string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, commit)
	return name[:min(len(name), 12)]
}

// Read returns the entries of a history, the oldest first. A directory that does not exist has none.
func Read(dir string) (all []Entry, err error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the history: %w", err)
	}
	found = slices.DeleteFunc(found, func(e fs.DirEntry) bool { return !e.IsDir() || strings.HasPrefix(e.Name(), ".") })
	for _, e := range found[max(0, len(found)-mostEntries):] {
		one, err := readEntry(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("the entry %s of the history cannot be read (remove it to go on): %w", e.Name(), err)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

func readEntry(dir string) (e Entry, err error) {
	text, err := os.ReadFile(filepath.Join(dir, aboutFile))
	if err == nil {
		err = json.Unmarshal(text, &e.About)
	}
	if err != nil {
		return e, err
	}
	if text, err = os.ReadFile(filepath.Join(dir, gateFile)); err != nil {
		return e, err
	}
	if e.Gate, err = request.Parse(text); err != nil {
		return e, err
	}
	e.Values, err = recorded.Read([]string{filepath.Join(dir, valuesFile)}, e.Gate)
	return e, err
}
