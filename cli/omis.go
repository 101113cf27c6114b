package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mirador/cli/client"
	"mirador/omis/syntax"
)

func newOMIS(g *globals) *cobra.Command {
	var tool string
	cmd := &cobra.Command{
		Use:   "omis [--tool NAME] ['REQUEST']",
		Short: "Send OMIS requests",
		Long: `Sends one OMIS request and prints the reply in OMIS notation; the exit status is 1
if a service failed. Without a request it is a session: every line of the
standard input is a request, and replies of conditional requests are printed as
they arrive, for as long as the input is open.

Without --tool the request is sent as the tool of the only application, so that
the empty list [] stands for its processes.`,
		Example: `  mirador omis ': proc_get_info([],0x202)'
  mirador omis --tool mine ': proc_attach([])'
  echo ': node_get_info([],1)' | mirador omis`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			gateway, err := g.connect()
			if err != nil {
				return err
			}
			defer gateway.Close()
			s := omisSession{gateway: gateway, tool: tool, out: &printer{w: g.streams.Out}}
			if len(args) == 1 {
				return s.once(cmd.Context(), args[0])
			}
			return s.interact(cmd.Context(), g.streams)
		},
	}
	cmd.Flags().StringVar(&tool, "tool", "", "the tool's name (default the only application's)")
	return cmd
}

// omisSession sends requests as one tool.
type omisSession struct {
	gateway *client.Client
	tool    string
	out     *printer
}

// errReply tells that a reply, printed already, has an error in it.
var errReply = errors.New("the reply has an error")

func (s *omisSession) once(ctx context.Context, request string) error {
	path := "/omis"
	if s.tool != "" {
		path += "?tool=" + url.QueryEscape(s.tool)
	}
	reply, err := s.gateway.Do(ctx, client.Request{
		Method: http.MethodPost, Path: path, Type: "text/plain", Accept: "text/plain", Body: []byte(request),
	})
	if err != nil {
		return err
	}
	if reply.Failed() {
		return errors.New(reply.Message())
	}
	s.out.print(string(reply.Body))
	parsed, err := syntax.ParseReply(string(reply.Body))
	if err != nil {
		return fmt.Errorf("cannot read the reply: %w", err)
	}
	if parsed.Err() != nil {
		return silentFailure{errReply}
	}
	return nil
}

// interact reads requests line by line. A prompt is for people.
func (s *omisSession) interact(ctx context.Context, streams Streams) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following := s.follow(ctx)
	defer following.stop(cancel)
	if isTerminal(streams.In) && isTerminal(streams.Out) {
		s.out.prompt = "omis> "
		s.out.print("")
	}
	failed := false
	for line := range inputLines(ctx, streams.In) {
		if strings.TrimSpace(line) == "" {
			s.out.print("")
			continue
		}
		err := s.once(ctx, line)
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
	stream, refused, err := s.gateway.Stream(ctx, "/omis/tools/"+url.PathEscape(tool)+"/replies?format=text")
	if err != nil || refused != nil {
		return nil
	}
	f := &follower{stream: stream, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for {
			text, more := stream.Next()
			if !more {
				return
			}
			s.out.print(text + "\n")
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
