package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"mirador/cli/session"
	gateway "mirador/http"
	"mirador/mir/client"
	"mirador/omis/host/prototype"
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
			c := session.Config{
				Gateway: gateway, Tool: tool, Flags: flags, Services: g.services, In: g.streams.In, Out: g.streams.Out, Err: g.streams.Err,
				Typed: isTerminal(g.streams.In) && isTerminal(g.streams.Out), History: cmp.Or(history, session.DefaultHistory()),
			}
			if isTerminal(g.streams.Out) {
				c.Plain = plain
			}
			if len(args) == 1 {
				err = session.New(c).Once(cmd.Context(), args[0])
			} else {
				err = session.New(c).Interact(cmd.Context())
			}
			if errors.Is(err, session.ErrReply) {
				return silentFailure{err}
			}
			return err
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

// services asks the gateway for the table of services.
func (g *globals) services(ctx context.Context) ([]gateway.Service, error) {
	return answer(g, func(c *client.Client) (rows []gateway.Service, err error) {
		return rows, c.JSON(ctx, client.Request{Method: http.MethodGet, Path: "/omis/services"}, &rows)
	})
}
