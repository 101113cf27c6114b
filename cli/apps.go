package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mirador/mir/client"
	"mirador/probes"
)

func newRun(g *globals) *cobra.Command {
	var asJSON bool
	var req client.AppRequest
	var launch client.LaunchRequest
	cmd := &cobra.Command{
		Use:   "run [--app NAME] [--follow] [--paused [--lease TIME]] -- PROG ARG…",
		Short: "Start a program under the gateway",
		Long: `Starts a program under a running gateway, with this command's environment and
working directory, and prints the application's name and its process tokens. The
program runs as the gateway's user. It writes to the gateway's output, unless files are
given. With --follow the application also includes processes that the program forks
while there are probes.

With --paused the program stops as soon as its libraries are mapped, before its first
constructor. Set probes, then start it with "mirador continue NAME": the probes count from
the first call. If the gateway is killed meanwhile, the program continues.

A program that starts another one (sh -c, env, nice) is paused itself, not the other one,
and its probes end when it executes the other one. So name the program itself: it inherits
the environment of this command. A statically linked program stops before its first
instruction; probes that are set there are in the kernel or in the monitor, not inline.`,
		Example: `  mirador run -- sleep 60
  mirador run --app mmul --stdout mmul.log -- bin/mmul
  mirador run --paused --lease 10m -- bin/mmul`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := prepareLaunch(&launch, args); err != nil {
				return err
			}
			req.Launch = &launch
			return createApp(cmd, g, asJSON, req)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the program is the program's
	flags.StringVar(&req.Name, "app", "", "the application's name (default the program's)")
	flags.BoolVar(&req.Follow, "follow", false, "include the processes that the program forks")
	flags.BoolVar(&req.Paused, "paused", false, `stop the program before its first constructor, until "mirador continue"`)
	flags.StringVar(&req.Lease, "lease", "", "continue a paused program when its application got no document for this time (default never)")
	flags.StringVar(&launch.Stdin, "stdin", "", "a file to read (default nothing)")
	flags.StringVar(&launch.Stdout, "stdout", "", "a file to write (default the gateway's output)")
	flags.StringVar(&launch.Stderr, "stderr", "", "a file to write errors to (default the gateway's)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// prepareLaunch makes paths absolute, because the gateway has another working directory.
func prepareLaunch(launch *client.LaunchRequest, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("cannot start %s: %w", args[0], errors.Unwrap(err))
	}
	if launch.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if launch.Path, err = filepath.Abs(path); err != nil {
		return err
	}
	for _, file := range []*string{&launch.Stdin, &launch.Stdout, &launch.Stderr} {
		if *file == "" {
			continue
		}
		if *file, err = filepath.Abs(*file); err != nil {
			return err
		}
	}
	launch.Args = args[1:]
	launch.Env = os.Environ()
	return nil
}

func newAttach(g *globals) *cobra.Command {
	var asJSON, alone, follow bool
	var name string
	cmd := &cobra.Command{
		Use:   "attach [--app NAME] [--alone|--follow] PID…",
		Short: "Observe running processes",
		Long: `Attaches to running processes as an application, and prints its name and its process
tokens. This does not disturb the processes: a process is stopped for a moment only
when a request needs it.

The application includes the processes that these have forked and that still execute the
same program, such as the workers of a server. If there are any, it also includes processes
that are forked later, while there are probes; --follow includes later ones in any case,
and --alone excludes all forked processes.

If an application has all these processes already, the command prints that application.
With --app, --follow or --alone it makes another one.`,
		Example: `  mirador attach 4711
  mirador attach --alone 4711
  mirador attach --app web $(pgrep nginx)`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := client.AppRequest{Name: name, Alone: alone, Follow: follow}
			for _, arg := range args {
				pid, err := strconv.Atoi(arg)
				if err != nil || pid <= 0 {
					return usagef("%q is no process id; \"pgrep NAME\" prints those of a program", arg)
				}
				req.Attach = append(req.Attach, pid)
			}
			if name == "" && !alone && !follow {
				if known, err := observing(cmd.Context(), g, req.Attach); err != nil || known != nil {
					return errors.Join(err, printKnown(g, asJSON, known))
				}
			}
			return createApp(cmd, g, asJSON, req)
		},
	}
	cmd.Flags().StringVar(&name, "app", "", "the application's name (default the first program's)")
	cmd.Flags().BoolVar(&follow, "follow", false, "include the processes that these will fork")
	cmd.Flags().BoolVar(&alone, "alone", false, "exclude the processes that these have forked and will fork")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// observing returns the application that has all these processes, nil if there is none.
func observing(ctx context.Context, g *globals, pids []int) (*client.App, error) {
	apps, err := answer(g, func(c *client.Client) ([]client.App, error) { return c.Apps(ctx) })
	for i := range apps {
		has := func(pid int) bool {
			return slices.ContainsFunc(apps[i].Processes, func(p client.Process) bool { return p.PID == pid && !p.Gone })
		}
		if !slices.ContainsFunc(pids, func(pid int) bool { return !has(pid) }) {
			return &apps[i], err
		}
	}
	return nil, err
}

func printKnown(g *globals, asJSON bool, app *client.App) error {
	if app == nil {
		return nil
	}
	fmt.Fprintf(forPeople(g.streams.Err), "mirador: observed already, as application %s; --app NAME makes another application\n", app.Name)
	app.Processes = slices.DeleteFunc(app.Processes, func(p client.Process) bool { return p.Gone })
	return printApp(g, asJSON, app)
}

func createApp(cmd *cobra.Command, g *globals, asJSON bool, req client.AppRequest) error {
	app, err := answer(g, func(c *client.Client) (client.App, error) { return c.Create(cmd.Context(), req) })
	if err != nil {
		return err
	}
	return printApp(g, asJSON, &app)
}

func printApp(g *globals, asJSON bool, app *client.App) error {
	if asJSON {
		return printJSON(g.streams.Out, app)
	}
	for _, p := range app.Processes {
		if _, err := fmt.Fprintln(forPeople(g.streams.Out), app.Name, p.Token); err != nil {
			return err
		}
		if p.Paused != "" {
			fmt.Fprintf(forPeople(g.streams.Err), "process %d is paused %s; set probes, then: mirador continue %s\n", p.PID, p.Paused, app.Name)
		}
	}
	return nil
}

func newContinue(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "continue NAME",
		Short: "Continue a program that was started paused",
		Long: `Continues the processes of an application that were started by "mirador run --paused" or
by POST /apps with "paused": true. It is an error if none waits to be continued.`,
		Example:           "  mirador run --paused -- bin/mmul\n  mirador continue mmul",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := answer(g, func(c *client.Client) (client.App, error) { return c.Continue(cmd.Context(), args[0]) })
			return err
		},
	}
}

func newApps(g *globals) *cobra.Command {
	var format tableFormat
	cmd := &cobra.Command{
		Use:     "apps",
		Short:   "List the applications and their processes",
		Long:    "Lists the applications that the gateway observes, one line for each process. Processes that have ended are listed until their application is released.",
		Example: "  mirador apps\n  mirador apps --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			apps, err := answer(g, func(c *client.Client) ([]client.App, error) { return c.Apps(cmd.Context()) })
			if err != nil {
				return err
			}
			return printTable(g.streams.Out, format, table[appRow]{
				root: "apps", row: "process", rows: appRows(apps), header: []string{"NAME", "TOKEN", "PID", "STATE", "COMMAND"},
				cells: func(r appRow) []string { return []string{r.App, r.Token, strconv.Itoa(r.PID), r.State, r.Command} },
			})
		},
	}
	format.flags(cmd)
	return cmd
}

// appRow is a process in the list of applications.
type appRow struct {
	App     string `json:"app" xml:"app,attr"`
	Token   string `json:"token" xml:"token,attr"`
	PID     int    `json:"pid" xml:"pid,attr"`
	State   string `json:"state" xml:"state,attr"` // running, paused or terminated, as for an application
	Command string `json:"command" xml:",chardata"`
}

func appRows(apps []client.App) []appRow {
	rows := []appRow{}
	for _, app := range apps {
		for _, p := range app.Processes {
			state := probes.Running
			switch {
			case p.Gone:
				state = probes.Terminated
			case p.Paused != "":
				state = probes.Paused
			}
			rows = append(rows, appRow{App: app.Name, Token: string(p.Token), PID: p.PID, State: state, Command: strings.Join(p.Argv, " ")})
		}
	}
	return rows
}

func newRelease(g *globals) *cobra.Command {
	var kill bool
	cmd := &cobra.Command{
		Use:   "release [--kill] NAME",
		Short: "Forget an application; its processes continue",
		Long: `Removes an application's probes and forgets the application. Its processes continue
as if they had never been observed; --kill ends the processes that the gateway started.`,
		Example: "  mirador release mmul\n  mirador release --kill mmul",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := answer(g, func(c *client.Client) (any, error) { return nil, c.Release(cmd.Context(), args[0], kill) })
			return err
		},
	}
	cmd.Flags().BoolVar(&kill, "kill", false, "end the processes that the gateway started")
	return cmd
}
