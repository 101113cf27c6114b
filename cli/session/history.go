package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// noHistory, as the name of the file, means that no history is kept.
	noHistory = "off"
	// mostHistory limits the lines that a session keeps. The file may grow to twice as many lines
	// before it is shortened.
	mostHistory = 1000
	// longestHistory limits the length of a line that is kept.
	longestHistory = 8 << 10
)

// history contains the lines typed in this session and in earlier ones. It implements term.History
// and is used by the goroutine that reads lines. Concurrent sessions append to the same file.
type history struct {
	lines []string // oldest first
	file  string   // "": nothing is kept
	err   error    // of the file; after an error nothing is kept
}

// DefaultHistory returns MIRADOR_HISTORY, or a file in the user's state directory.
func DefaultHistory() string {
	if file := os.Getenv("MIRADOR_HISTORY"); file != "" {
		return file
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mirador", "omis_history")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "mirador", "omis_history")
	}
	return noHistory
}

// openHistory reads the lines of earlier sessions and shortens the file. If the file cannot be
// used, the session continues without history.
func openHistory(file string) *history {
	if file == noHistory {
		return &history{}
	}
	h := &history{file: file}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		h.lines = strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
		if len(h.lines) > 2*mostHistory {
			err = h.shorten()
		}
		h.bound()
	}
	h.failed(err)
	return h
}

func (h *history) bound() { h.lines = slices.Delete(h.lines, 0, max(0, len(h.lines)-mostHistory)) }

// shorten replaces the file by one with the last lines, by a rename, so that other sessions never
// read a partial file.
func (h *history) shorten() error {
	h.bound()
	temporary, err := os.CreateTemp(filepath.Dir(h.file), ".omis_history-") // with the mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	var text bytes.Buffer
	for _, line := range h.lines {
		fmt.Fprintln(&text, line)
	}
	_, err = temporary.Write(text.Bytes())
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), h.file)
}

func (h *history) failed(err error) {
	if err != nil {
		h.err, h.file = fmt.Errorf("the history is not kept: %w", err), ""
	}
}

// complain prints, at the end of the session, that its lines were not kept.
func (h *history) complain(out io.Writer) {
	if h.err != nil {
		fmt.Fprintf(out, "mirador: %v\n", h.err)
	}
}

// Add implements term.History. It ignores a line that equals the line before it, or that begins with a blank.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || line[0] == ' ' || len(line) > longestHistory ||
		len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.bound()
	if h.file != "" {
		h.failed(h.write(line))
	}
}

// write appends a line to the file in one write, since other sessions may append at the same time.
// The file is private, because requests may contain secrets.
func (h *history) write(line string) error {
	f, err := os.OpenFile(h.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = f.Chmod(0o600); err == nil {
		_, err = f.WriteString(line + "\n")
	}
	return errors.Join(err, f.Close())
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: index 0 is the last line.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
