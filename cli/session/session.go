package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	gateway "mirador/http"
	"mirador/mir/client"
	"mirador/omis"
	"mirador/omis/syntax"
)

// Config configures New.
type Config struct {
	Gateway *client.Client
	Tool    string // "": the tool of the only application
	Flags   uint32 // of every request
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	// Services asks the gateway for the table of services.
	Services func(context.Context) ([]gateway.Service, error)
	// Plain replaces what controls a terminal in the text of replies; nil prints replies as they are.
	Plain func(string) string
	// Typed reports that In and Out are a terminal, so that a person edits the lines.
	Typed   bool
	History string // the file that keeps typed lines: see DefaultHistory
}

// Session sends requests as one tool.
type Session struct {
	config Config
	out    *printer
	names  names
}

// New returns a session.
func New(c Config) *Session {
	return &Session{config: c, out: &printer{w: c.Out, plain: c.Plain}, names: names{ask: c.Services}}
}

// ErrReply reports that a request failed; the reply or the error was printed already.
var ErrReply = errors.New("the reply has an error")

// Interact reads requests line by line; from a terminal it reads them by an editor.
func (s *Session) Interact(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines iter.Seq[string]
	if s.config.Typed {
		kept := openHistory(s.config.History)
		defer func() { kept.complain(s.config.Err) }()
		edit := newLineEditor(s.config.In.(*os.File), s.config.Out, kept, s.completer(ctx))
		defer edit.close()
		s.out.w = edit.term
		lines = edit.lines(ctx)
	} else {
		lines = inputLines(ctx, s.config.In)
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
		switch {
		case errors.Is(err, ErrReply):
			failed = true
		case !s.config.Typed && errors.As(err, new(*client.Unreachable)):
			return err // a person may try again when the gateway runs again, but a script ends
		case err != nil:
			failed = true
			s.out.print("error: " + err.Error() + "\n")
		}
	}
	return s.outcome(failed)
}

// obey executes a line.
func (s *Session) obey(ctx context.Context, line string, words []string) error {
	if words[0] != "help" {
		return s.Once(ctx, line)
	}
	text, err := s.names.help(ctx, words[1:])
	if err == nil {
		s.out.print(text)
	}
	return err
}

func (s *Session) outcome(failed bool) error {
	if failed {
		return ErrReply
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

// Once sends one request and prints the reply.
func (s *Session) Once(ctx context.Context, request string) error {
	text, parsed, err := s.send(ctx, request)
	if text != "" {
		s.out.print(text)
	}
	if err != nil {
		return err
	}
	s.names.saw(parsed)
	if parsed.Err() != nil {
		return ErrReply
	}
	return nil
}

// send returns the reply as text and decoded.
func (s *Session) send(ctx context.Context, request string) (string, omis.Reply, error) {
	query := url.Values{}
	if s.config.Tool != "" {
		query.Set("tool", s.config.Tool)
	}
	if s.config.Flags != 0 {
		query.Set("flags", strconv.FormatUint(uint64(s.config.Flags), 10))
	}
	path := "/omis?" + query.Encode()
	reply, err := s.config.Gateway.Do(ctx, client.Request{
		Method: http.MethodPost, Path: path, Type: "text/plain", Accept: "application/xml", Body: []byte(request),
	})
	if err != nil {
		return "", nil, err
	}
	if err := reply.Err(); err != nil {
		return "", nil, err
	}
	if len(reply.Body) == 0 { // the monitor buffers the request
		return "", nil, nil
	}
	parsed, err := client.ParseReply(reply.Body)
	return syntax.PrintReply(parsed), parsed, err
}
