package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mirador/mir"
	"mirador/mir/client"
)

func newDemo(g *globals) *cobra.Command {
	var target, socket string
	var stay bool
	cmd := &cobra.Command{
		Use:   "demo [--serve] [--socket PATH] [--target FILE]",
		Short: "A first measurement, from nothing to the end",
		Long: `Starts a gateway with everything embedded in a temporary folder, starts the
example target mmul under it, and asks for a snapshot, for the structure, for a
probe on the function dot and for its value. It prints every document that it
posts and gets, and compares the measured count with the target's own.

The exit status is 1 if the counts disagree. With --serve it continues to serve, on the
default socket, with a target that continues to run, until it is interrupted.`,
		Example: "  mirador demo\n  mirador demo --serve",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := findTarget(target)
			if err != nil {
				return err
			}
			if socket == "" && stay {
				socket = client.DefaultSocket()
			}
			return demo(cmd.Context(), g.streams, program, socket, stay)
		},
	}
	cmd.Flags().StringVar(&target, "target", "", "the program mmul (default beside this program)")
	cmd.Flags().StringVar(&socket, "socket", "", "the gateway's Unix socket (default a temporary one; with --serve "+client.DefaultSocket()+")")
	cmd.Flags().BoolVar(&stay, "serve", false, "continue to serve until interrupted")
	return cmd
}

// findTarget returns the path of mmul: the given one, or the file beside this program.
func findTarget(given string) (string, error) {
	if given == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		given = filepath.Join(filepath.Dir(self), "mmul")
	}
	path, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no target at %s: build it with \"make\", or say where it is with --target", path)
	}
	return path, nil
}

func demo(ctx context.Context, streams Streams, target, socket string, stay bool) error {
	dir, err := os.MkdirTemp("", "mirador-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if socket == "" {
		socket = filepath.Join(dir, "mirador.sock")
	}
	// The demo prints documents only, so the log contains only warnings and errors.
	s := settings{Listen: "off", Socket: socket, Data: filepath.Join(dir, "data"), Node: hostname(), Placements: placements, Hold: holdByRendezvous, Calibrate: calibrateWhenNeeded,
		Longest: mir.RequestLimits().Bytes, level: slog.LevelWarn}
	c, err := client.New("unix:"+socket, client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	d := demonstration{gateway: c, out: streams.Out, target: target, dir: dir}
	return serve(ctx, s, streams, func(ctx context.Context) error {
		if err := d.measure(ctx); err != nil {
			return err
		}
		if !stay {
			fmt.Fprintf(d.out, "\nTo try it yourself run \"%s demo --serve\", and in another terminal:\n%s", os.Args[0], curls(client.DefaultSocket()))
			return nil
		}
		return d.stay(ctx, socket)
	})
}

// curls returns three commands to try next.
func curls(socket string) string {
	at := "curl --unix-socket " + socket
	return "  " + at + " -d '<snapshotreq named=\"true\" stack=\"8\"/>' http://mirador/mir\n" +
		"  " + at + " -H 'Prefer: explain' -d '<instrreq><codeRegion from=\"mmul:" + region + "\"/><metric name=\"COUNT\"/></instrreq>' http://mirador/mir\n" +
		"  " + at + " -H 'Accept: text/plain' -d ': proc_get_info([],0x202)' http://mirador/omis\n"
}
