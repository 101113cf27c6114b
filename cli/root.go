package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mirador/mir/client"
	"mirador/omis/syntax"
)

// Exit statuses, which scripts rely on.
const (
	exitOK          = 0
	exitFailed      = 1 // the request failed
	exitUsage       = 2 // bad usage
	exitUnreachable = 3 // no gateway
	exitGateFailed  = 4
	exitGateUnclear = 5
)

// Streams are the input and outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Standard returns the streams of the process.
func Standard() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// silentFailure is a failure whose message was printed already.
type silentFailure struct{ error }

// Main runs one command and returns the process's exit status.
func Main(args []string, streams Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills a command that ignores the first
	root := newRoot(streams)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	return exitStatus(called, streams.Err, err)
}

// commands replaces what the gateway recommends to clients in HTTP by commands.
var commands = strings.NewReplacer("GET /catalog", `"mirador catalog"`, "GET /probes", `"mirador probe list"`, "a sirreq", `"mirador sir --pid PID"`,
	`post to /apps/NAME/mir, or with "mirador post --app NAME"`, "choose one with --app NAME")

// probeFlags replaces elements of requests by the flags that stand for them.
var probeFlags = strings.NewReplacer("add a codeRegion", "add a --region", "the request has no codeRegion", "there is no --region", `leave "percentiles" out`, "leave --percentiles out")

// exitStatus prints an error and returns the exit status.
func exitStatus(called *cobra.Command, out io.Writer, err error) int {
	var usage usageError
	var silent silentFailure
	var unreachable *client.Unreachable
	var judged gateVerdict
	var refused *client.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &judged):
		return judged.status()
	case errors.As(err, &silent):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(out, "mirador: %s\nSee \"%s --help\".\n", plain(err.Error()), called.CommandPath())
		return exitUsage
	case errors.As(err, &refused):
		why := commands.Replace(err.Error())
		if called.Parent() != nil && called.Parent().Name() == "probe" {
			why = probeFlags.Replace(why)
		}
		fmt.Fprintf(out, "mirador: %s\n", plain(why))
		return exitFailed
	case errors.As(err, &unreachable):
		fmt.Fprintf(out, "mirador: %s\n", plain(err.Error()))
		return exitUnreachable
	}
	fmt.Fprintf(out, "mirador: %s\n", plain(err.Error()))
	return exitFailed
}

// globals contains the flags that every client command has.
type globals struct {
	streams Streams
	gateway string
	options client.Options
}

func (g *globals) connect() (*client.Client, error) {
	c, err := client.New(g.gateway, g.options)
	if errors.As(err, new(*client.AddressError)) {
		return nil, usageError{err}
	}
	return c, err
}

func newRoot(streams Streams) *cobra.Command {
	g := &globals{streams: streams}
	root := &cobra.Command{
		Use:   "mirador",
		Short: "Observe running programs",
		Long: `Mirador observes running programs. A tool posts an XML request (a MIR
document); the gateway turns it into event/action requests of an on-line monitor
(OMIS); the monitor observes live, unmodified processes and answers.

"mirador serve" starts the gateway; every other command talks to it over a Unix
socket or over HTTP. Exit status: 0 success, 1 the request failed, 2 bad usage,
3 no gateway.`,
		Example: `  mirador serve &
  mirador run -- sleep 60
  echo '<snapshotreq named="true" stack="8"/>' | mirador post -`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if bad := (*strconv.NumError)(nil); errors.As(err, &bad) {
			return usagef("%q is no number: %s", bad.Num, strings.SplitN(err.Error(), ": ", 2)[0])
		}
		if before, after, missing := strings.Cut(err.Error(), ": time: missing unit in duration "); missing {
			number, _ := strconv.Unquote(after)
			return usagef("%s: a time needs a unit, such as %ss or %[2]sms", before, number)
		}
		return usagef("%w%s", err, nearFlag(cmd, err.Error()))
	})
	g.flags(root)
	root.AddCommand(
		newServe(g), newRun(g), newContinue(g), newAttach(g), newApps(g), newRelease(g), newPost(g), newProbe(g), newOMIS(g), newSIR(g),
		newCatalog(g), newLocks(g), newStacks(g), newSyscalls(g), newServices(g), newDoctor(g), newGate(g), newDemo(g), newVersion(g), newMan(g), newWarden(g), newRegistrar(g), newSources(g),
	)
	return root
}

func (g *globals) flags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&g.gateway, "gateway", "", "where the gateway is: unix:PATH or http(s)://HOST:PORT (default MIRADOR_GATEWAY, else unix:"+client.DefaultSocket()+")")
	flags.StringVar(&g.options.User, "gateway-user", "", "the user, by name or uid, whose gateway on a Unix socket is trusted besides root's and your own (default MIRADOR_GATEWAY_USER)")
	flags.StringVar(&g.options.TokenFile, "token-file", "", "the token for a gateway over TCP (default "+client.DefaultData()+"/token)")
	flags.StringVar(&g.options.CA, "ca", "", "the authority of the gateway's certificate, a PEM file")
	flags.StringVar(&g.options.Cert, "cert", "", "a client certificate, a PEM file")
	flags.StringVar(&g.options.Key, "key", "", "the key of the client certificate, a PEM file")
}

// nearFlag suggests a flag of a command, if the error is that a flag does not exist.
func nearFlag(cmd *cobra.Command, why string) (near string) {
	wrong, unknown := strings.CutPrefix(why, "unknown flag: --")
	if !unknown {
		return ""
	}
	best := 3 // differences from the flag are too many
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if far := syntax.Distance(wrong, f.Name, best); far < best {
			best, near = far, "; did you mean --"+f.Name+"?"
		}
	})
	return near
}

// knownCommand refuses a word that is not a command, and suggests similar commands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, within, _ := strings.Cut(cmd.CommandPath()+" ", " ") // without the name of the program
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 {
		return usagef("there is no command %q", within+args[0])
	}
	return usagef("there is no command %q; did you mean %s?", within+args[0], within+strings.Join(near, " or "+within))
}

// arguments turns an error of check into a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("these are not its arguments; write %s", cmd.UseLine())
		}
		return nil
	}
}
