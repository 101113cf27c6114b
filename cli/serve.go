package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/cli/doctor"
	gateway "mirador/http"
	"mirador/mir/client"
	"mirador/omis/place/kernel"
	"mirador/probes/journal"
)

// grace limits how long running requests may take after the gateway was told to end.
const grace = 5 * time.Second

func newServe(g *globals) *cobra.Command {
	flags := settings{}
	var file string
	var show bool
	cmd := &cobra.Command{
		Use:   "serve [--listen HOST:PORT] [--socket PATH] [--data DIR] [--config FILE] [--node NAME] [--prototypes PATH] [--placements LIST] [--prefer WHAT] [--hold WAY] [--calibrate WHEN]",
		Short: "Start the gateway",
		Long: `Starts the gateway with everything embedded, and serves until it is interrupted.
When it answers requests it prints one line, "ready" and its addresses.

On the Unix socket the gateway identifies a caller by the user id, and lets the caller
access only this user's processes. TCP requires the token that the first start creates in
the data directory; beyond loopback it also requires TLS (a certificate in the
configuration).

The data directory must belong to the gateway's user. No other user may be able to write
to it or to a directory that leads to it, except sticky ones like /tmp.

Each setting is a flag, a variable of the environment (--log-level is MIRADOR_LOG_LEVEL) and
a name in the JSON file of --config ("log-level"), in this order of precedence; see
doc/configuration.md. --print-config prints the effective settings and ends.

Placements are where the actions of conditional requests may run: inline (code in the
program itself) and kernel (programs in the kernel), which do not hold threads, and trap
(in the monitor, while the thread is held, which is always possible). The gateway chooses
the cheapest placement that can do the whole request.

Another tool's uprobe at the first byte of a jump ends the program. So inline avoids the
first instruction of a function. In the few functions where a jump can be nowhere else, it
is there, and "placement" says so; with --prefer sharing the gateway chooses another
placement for these, and breakpoints hold threads at the beginnings of functions.

Prototypes give the parameters of library calls their types if a library has no debug
information (doc/prototypes.md). In a folder, only the files *.prototypes are read.

Threads of a program are held, until the actions of an event are done, by
"rendezvous" where that is possible: a jump in the program leads them to memory
that is shared with the monitor. With --hold ptrace breakpoints stop them instead; each
hit costs more (doc/survival.md).

Threads that an OMIS tool has stopped or suspended continue when the tool has vanished:
after a minute (--lease) in which it sent no request and no stream of its replies was
connected. Threads that another tool has stopped as well stay stopped.

The gateway measures what probes cost on this machine once for each data directory, in the
background after the start (--calibrate at-start). This takes 5 to 15 seconds. No answer waits
for it: until then costs are rough, and times include what the probe itself costs. With
--calibrate when-needed the first request that needs the figures measures them, and waits.`,
		Example: `  mirador serve
  mirador serve --socket ~/.mirador/socket --listen 127.0.0.1:0 --data ~/.mirador
  mirador serve --prototypes examples/prototypes
  mirador serve --config /etc/mirador.json --log-level debug`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.complete(cmd, file)
			if err != nil {
				return err
			}
			if show {
				return printSettings(g.streams.Out, cmd.Flags())
			}
			return serve(cmd.Context(), s, g.streams, nil)
		},
	}
	flags.define(cmd)
	cmd.Flags().StringVar(&file, "config", "", "a configuration file")
	cmd.Flags().BoolVar(&show, "print-config", false, "print the effective settings and end")
	return cmd
}

// serve runs a gateway until ctx ends. If ready is not nil, serve calls it on its own goroutine
// once the gateway answers, and runs until ready returns. ready is a client of the gateway, and may
// have to clean up after ctx ended.
func serve(ctx context.Context, s settings, streams Streams, ready func(context.Context) error) (err error) {
	defer collectRarely()()
	log := slog.New(slog.NewTextHandler(streams.Err, &slog.HandlerOptions{Level: s.level}))
	token, err := gateway.LoadToken(s.Data)
	if err != nil {
		return err
	}
	listeners, err := s.open()
	if err != nil {
		return err
	}
	j, err := journal.Open(s.Data)
	if err != nil {
		closeAll(listeners)
		return err
	}
	if fetched := s.fetched(); fetched != "" {
		if err := os.RemoveAll(fetched); err != nil { // of a gateway that was killed
			log.Warn("cannot remove the files that a former gateway has fetched", "error", err)
		}
	}
	release := func() {
		closeAll(listeners)
		j.Close() // errors do not matter: all records were written before
	}
	told := ctx
	if ready != nil {
		told = context.WithoutCancel(ctx)
	}
	serving, stop := context.WithCancelCause(told)
	defer stop(nil)
	e := &ending{limit: longestEnd, flush: release, exit: os.Exit, out: streams.Err}
	defer e.watch(serving)()
	defer release()
	e.waitFor("the processes of an earlier gateway")
	m, err := join(s, log, j)
	if err != nil {
		return err
	}
	defer func() {
		stop(nil)
		e.waitFor("the release of its processes")
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err = errors.Join(err, m.Close(bounded))
	}()
	if err := m.registry.Restore(ctx); err != nil {
		return err
	}
	server, err := newGateway(s, token, log, m)
	if err != nil {
		return err
	}
	fmt.Fprintln(streams.Out, "ready "+strings.Join(places(listeners, s), " "))
	notifySystemd("READY=1")
	if s.Calibrate == calibrateAtStart {
		go m.calibrate(log)
	}
	if s.mayPlace(kernel.Name) {
		go sweep(log)
	}
	log.Info("serving", "places", places(listeners, s), "token", token.Path(), "version", readVersion().Version)

	if ready != nil {
		go func() { stop(ready(ctx)) }()
	}
	e.waitFor("the end of running requests")
	if err := server.Serve(serving, grace, listeners...); err != nil {
		return err
	}
	notifySystemd("STOPPING=1")
	if cause := context.Cause(serving); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// sweep removes objects of killed gateways from the kernel if no other gateway can adopt them.
func sweep(log *slog.Logger) {
	of, err := doctor.Sweep(registrarSelf())
	if len(of) > 0 {
		log.Warn("removed objects of killed gateways whose data directories are gone from the kernel", "directories", of)
	}
	if err != nil {
		log.Warn("cannot remove all objects of killed gateways from the kernel", "error", err)
	}
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// places returns the addresses of the gateway in the form that --gateway accepts.
func places(listeners []net.Listener, s settings) []string {
	var at []string
	for _, l := range listeners {
		p := client.Place{Socket: l.Addr().String()}
		if l.Addr().Network() == "tcp" {
			p = client.Place{URL: s.scheme() + "://" + l.Addr().String()}
		}
		at = append(at, p.String())
	}
	return at
}

// notifySystemd reports the state of a service of Type=notify to systemd (sd_notify(3)).
func notifySystemd(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(state))
}
