package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"mirador/mir/client"
	"mirador/omis"
	"mirador/omis/host/prototype"
	"mirador/omis/syntax"
)

func newOMIS(g *globals) *cobra.Command {
	var tool, history string
	var flags uint32
	var prototypes []string
	cmd := &cobra.Command{
		Use:   "omis [--tool NAME] [--prototypes PATH] ['REQUEST']",
		Short: "Send OMIS requests",
		Long: `Sends one OMIS request and prints the reply in OMIS notation; the exit status is 1
if a service failed. Without a request it is a session: every line of the
standard input is a request, and replies of conditional requests are printed as
they arrive, until the end of the input. If the stream of replies breaks off, the session
connects again and continues after the last reply; it reports lost replies. On a terminal
the arrow keys edit the line and recall earlier ones, and TAB completes services, tokens
and event context parameters. The line "help SERVICE" describes a service, "help" names
all services; "exit" or Ctrl-D ends the session.

The last 1000 lines typed on a terminal are kept for later sessions in
$XDG_STATE_HOME/mirador/omis_history (or ~/.local/state/mirador/omis_history), which
only you may read. --history, or MIRADOR_HISTORY, names another file; "off" keeps
nothing. A line that begins with a blank is not kept.

Without --tool the request is sent as the tool of the only application, so that
the empty list [] stands for its processes.

The flags of a request are a sum, as in OMIS 7.1.1: 2 no replies that only say OK,
4 no replies about enabling and disabling, 8 send the request with the next one that
does not have this flag, 16 replies may be late, 32 report what happens to the request.

With --prototypes, files that describe library functions are sent to the gateway
first (doc/prototypes.md); the gateway keeps them.`,
		Example: `  mirador omis ': proc_get_info([],0x202)'
  mirador omis --tool mine ': proc_attach([])'
  mirador omis --flags 6 < requests
  echo ': node_get_info([],1)' | mirador omis`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			gateway, err := g.connect()
			if err != nil {
				return err
			}
			defer gateway.Close()
			if err := sendPrototypes(cmd.Context(), gateway, prototypes); err != nil {
				return err
			}
			s := omisSession{gateway: gateway, tool: tool, flags: flags, out: &printer{w: g.streams.Out, plain: isTerminal(g.streams.Out)}, names: names{ask: g.services}}
			if len(args) == 1 {
				return s.once(cmd.Context(), args[0])
			}
			return s.interact(cmd.Context(), g.streams, cmp.Or(history, defaultHistory()))
		},
	}
	cmd.Flags().StringArrayVar(&prototypes, "prototypes", nil, "a file, or a folder of files, with prototypes of library functions; may be repeated")
	cmd.Flags().Uint32Var(&flags, "flags", 0, "the flags of every request, a sum")
	cmd.Flags().StringVar(&history, "history", "", "the file in which lines typed on a terminal are kept, or off (default MIRADOR_HISTORY, else in the user's state directory)")
	cmd.Flags().StringVar(&tool, "tool", "", "the tool's name (default the only application's)")
	return cmd
}

// sendPrototypes sends prototypes of library functions to the gateway.
func sendPrototypes(ctx context.Context, gateway *client.Client, paths []string) error {
	files, err := prototype.ReadFiles(paths)
	if err != nil {
		return err
	}
	for _, f := range files {
		req := client.Request{Method: http.MethodPost, Path: "/omis/prototypes?file=" + url.QueryEscape(f.Name), Type: "text/plain", Body: []byte(f.Text)}
		if err := gateway.JSON(ctx, req, nil); err != nil {
			return err
		}
	}
	return nil
}

// omisSession sends requests as one tool.
type omisSession struct {
	gateway *client.Client
	tool    string
	flags   uint32
	out     *printer
	names   names
}

// errReply reports an error in a reply that was printed already.
var errReply = errors.New("the reply has an error")

func (s *omisSession) once(ctx context.Context, request string) error {
	text, parsed, err := s.send(ctx, request)
	if text != "" {
		s.out.print(text)
	}
	if err != nil {
		return err
	}
	s.names.saw(parsed)
	if parsed.Err() != nil {
		return silentFailure{errReply}
	}
	return nil
}

// send returns the reply as text and decoded.
func (s *omisSession) send(ctx context.Context, request string) (string, omis.Reply, error) {
	query := url.Values{}
	if s.tool != "" {
		query.Set("tool", s.tool)
	}
	if s.flags != 0 {
		query.Set("flags", strconv.FormatUint(uint64(s.flags), 10))
	}
	path := "/omis?" + query.Encode()
	reply, err := s.gateway.Do(ctx, client.Request{
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
