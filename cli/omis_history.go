package cli

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
	// noHistory, in the place of a file, keeps nothing.
	noHistory = "off"
	// mostHistory bounds the lines that a session knows. The file may have as many
	// again before it is shortened.
	mostHistory = 1000
	// longestHistory bounds a line that is kept.
	longestHistory = 8 << 10
)

// history holds the lines that were typed, of this session and of earlier ones; it
// is the terminal's (term.History), and used by the goroutine that reads lines.
// Sessions at the same time add to one file.
type history struct {
	lines []string // the last one last
	file  string   // "": nothing is kept
	err   error    // of the file: from then on nothing is kept
}

// defaultHistory is MIRADOR_HISTORY, else a file in the user's state directory.
func defaultHistory() string {
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

// openHistory reads what earlier sessions left, and shortens that. A file that
// cannot be used is no reason to have no session.
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

// shorten puts a file with the last lines into the old one's place, so that
// nobody ever reads half of one.
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

// complain says, when the session is over, that its lines were not kept.
func (h *history) complain(out io.Writer) {
	if h.err != nil {
		fmt.Fprintf(out, "mirador: %v\n", h.err)
	}
}

// Add: see term.History. A line that says what the one before it said, or begins
// with a blank, is not added.
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

// write adds a line to the file: in one piece, since other sessions may do so too.
// Requests may hold what is nobody else's business.
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

// Len: see term.History.
func (h *history) Len() int { return len(h.lines) }

// At: see term.History: 0 is the last line.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
