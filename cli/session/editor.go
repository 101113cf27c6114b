package session

import (
	"context"
	"io"
	"iter"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// lineEditor reads lines from a terminal. Output that arrives meanwhile appears above the line being typed.
type lineEditor struct {
	term  *term.Terminal
	file  *os.File
	sizes chan os.Signal
	done  chan struct{}
}

// completion is the function that term.Terminal calls for each key.
type completion func(line string, pos int, key rune) (newLine string, newPos int, ok bool)

// newLineEditor creates an editor of lines that are typed at a terminal.
func newLineEditor(in *os.File, out io.Writer, kept *history, complete func(show func(string)) completion) *lineEditor {
	l := &lineEditor{
		term: term.NewTerminal(twoWay{in, out}, "omis> "), file: in,
		sizes: make(chan os.Signal, 1), done: make(chan struct{}),
	}
	l.term.History = kept
	l.term.AutoCompleteCallback = complete(func(text string) { io.WriteString(l.term, text) })
	l.resize()
	signal.Notify(l.sizes, syscall.SIGWINCH)
	go l.followSize()
	return l
}

type twoWay struct {
	io.Reader
	io.Writer
}

func (l *lineEditor) followSize() {
	defer close(l.done)
	for range l.sizes {
		l.resize()
	}
}

// resize tells the editor the terminal's size. If the terminal does not know its size, the width
// stays 80 columns.
func (l *lineEditor) resize() {
	if width, height, err := term.GetSize(int(l.file.Fd())); err == nil && width > 0 {
		l.term.SetSize(width, height)
	}
}

func (l *lineEditor) close() {
	signal.Stop(l.sizes)
	close(l.sizes)
	<-l.done
}

// lines returns lines until Ctrl-D, Ctrl-C or the end of the context.
func (l *lineEditor) lines(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			line, err := l.read(ctx)
			if err != nil || !yield(line) {
				return
			}
		}
	}
}

// read reads a line. The terminal is raw only during read, so that Ctrl-C interrupts a request that
// is being executed. A read cannot be interrupted: after the end of the context its goroutine ends
// with the process.
func (l *lineEditor) read(ctx context.Context) (string, error) {
	before, err := term.MakeRaw(int(l.file.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(l.file.Fd()), before)
	type result struct {
		line string
		err  error
	}
	typed := make(chan result, 1)
	go func() {
		line, err := l.term.ReadLine()
		if err == term.ErrPasteIndicator {
			err = nil
		}
		typed <- result{line, err}
	}()
	select {
	case r := <-typed:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
