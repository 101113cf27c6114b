package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"mirador/mir/client"
)

// interact reads requests line by line; on a terminal it uses an editor.
func (s *omisSession) interact(ctx context.Context, streams Streams, historyFile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines iter.Seq[string]
	// If the connection breaks, a session on a terminal goes on, while a script ends.
	typed := isTerminal(streams.In) && isTerminal(streams.Out)
	if typed {
		kept := openHistory(historyFile)
		defer func() { kept.complain(streams.Err) }()
		edit := newLineEditor(streams, kept, s.completer(ctx))
		defer edit.close()
		s.out.w = edit.term
		lines = edit.lines(ctx)
	} else {
		lines = inputLines(ctx, streams.In)
	}
	following := s.follow(ctx)
	defer following.stop(cancel)
	failed := false
	for line := range lines {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case len(words) == 1 && (words[0] == "exit" || words[0] == "quit"):
			return s.outcome(failed)
		}
		err := s.obey(ctx, line, words)
		var silent silentFailure
		switch {
		case errors.As(err, &silent):
			failed = true
		case !typed && errors.As(err, new(*client.Unreachable)):
			return err
		case err != nil:
			failed = true
			s.out.print("error: " + err.Error() + "\n")
		}
	}
	return s.outcome(failed)
}

// obey executes a line.
func (s *omisSession) obey(ctx context.Context, line string, words []string) error {
	if words[0] != "help" {
		return s.once(ctx, line)
	}
	text, err := s.names.help(ctx, words[1:])
	if err == nil {
		s.out.print(text)
	}
	return err
}

func (s *omisSession) outcome(failed bool) error {
	if failed {
		return silentFailure{errReply}
	}
	return nil
}

// inputLines returns lines until the end of the input. A read cannot be interrupted: after the end
// of the context the goroutine reads one more line, or ends with the process.
func inputLines(ctx context.Context, in io.Reader) iter.Seq[string] {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(yield func(string) bool) {
		for {
			select {
			case line, more := <-lines:
				if !more || !yield(line) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// maxLine limits the length of a request that is typed or piped in.
const maxLine = 1 << 20
