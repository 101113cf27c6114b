package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"net/url"
	"strings"

	"mirador/cli/client"
	"mirador/omis/syntax"
)

// interact reads requests line by line, with an editor for people.
func (s *omisSession) interact(ctx context.Context, streams Streams, historyFile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines iter.Seq[string]
	if isTerminal(streams.In) && isTerminal(streams.Out) {
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
		case errors.As(err, new(*client.Unreachable)):
			return err
		case err != nil:
			failed = true
			s.out.print("error: " + err.Error() + "\n")
		}
	}
	return s.outcome(failed)
}

// obey does what a line says.
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

// inputLines reads lines until the end of the input. A read cannot be
// interrupted: after the context's end the goroutine stays for one line more, or
// ends with the process.
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

// maxLine bounds a request that is typed or piped in.
const maxLine = 1 << 20

// follower prints the replies of conditional requests.
type follower struct {
	stream *client.Stream
	done   chan struct{}
}

// follow begins to print; a gateway that does not stream is no failure, since
// most requests are not conditional.
func (s *omisSession) follow(ctx context.Context) *follower {
	tool := s.tool
	if tool == "" {
		tool = "-"
	}
	stream, refused, err := s.gateway.Stream(ctx, "/omis/tools/"+url.PathEscape(tool)+"/replies?format=base64")
	if err != nil || refused != nil {
		return nil
	}
	f := &follower{stream: stream, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for {
			event, more := stream.Next()
			if !more {
				return
			}
			raw, err := base64.StdEncoding.DecodeString(event)
			if err != nil {
				s.out.print("error: cannot read a reply: " + err.Error() + "\n")
				continue
			}
			text := string(raw)
			s.out.print(text)
			if parsed, err := syntax.ParseReply(text); err == nil {
				s.names.saw(parsed)
			}
		}
	}()
	return f
}

func (f *follower) stop(cancel context.CancelFunc) {
	if f == nil {
		return
	}
	cancel()
	f.stream.Close()
	<-f.done
}
