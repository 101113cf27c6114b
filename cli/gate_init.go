package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/cli/gate"
	"mirador/cli/gate/measure"
)

func newGateInit(g *globals) *cobra.Command {
	var o gateOptions
	d := gate.Draft{}
	force := false
	cmd := &cobra.Command{
		Use:   "init --head CMD|PID [-f FILE] [flags]",
		Short: "Write a first gate file from a live run",
		Long: `Runs a program, finds the functions that take most time, measures their calls and
percentiles in several runs, and writes a gate file with comments: the observed values,
and limits with margins from what varied. Read it and change it.

Functions are found in the debug information of the program (gcc -g). Those in libraries,
or some of a large program, are chosen by --functions.`,
		Example: `  mirador gate init --head './shop 1000'
  mirador gate init --head 4711 --for 10s --functions shop:price`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.draft(cmd.Context(), g, d, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "gate.xml", "the file to write")
	flags.BoolVar(&force, "force", false, "overwrite the file")
	flags.StringVar(&d.Functions, "functions", "", "only functions whose names begin with this")
	flags.IntVar(&d.Most, "most", 5, "the number of functions in the gate")
	o.defineRun(cmd)
	return cmd
}

// draft writes a gate file.
func (o *gateOptions) draft(ctx context.Context, g *globals, d gate.Draft, force bool) error {
	switch {
	case o.head == "":
		return usagef("a --head is needed: the command to measure, or the id of a running process")
	case o.Load != "" && o.For > 0:
		return usagef("--load and --for exclude each other: a load runs until it ends")
	case o.Runs < 2 || d.Most < 1:
		return usagef("--runs must be at least 2, and --most at least 1")
	}
	flag := os.O_EXCL
	if force {
		flag = os.O_TRUNC
	}
	if _, err := os.Lstat(o.file); err == nil && !force {
		return usagef("%s exists; name another file with -f, or overwrite it with --force", o.file)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.longest, fmt.Errorf("the program was not measured after %v (--max-time)", o.longest))
	defer cancel()
	text := ""
	err := o.prepared(ctx, g, func(r *measure.Runner) (err error) {
		d.Runner, d.Head = r, sideOf(o.head)
		text, err = d.Write(ctx)
		for _, remark := range r.Remarks {
			fmt.Fprintln(g.streams.Err, plain(remark))
		}
		return err
	})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s exists; name another file with -f, or overwrite it with --force", o.file)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	again := fmt.Sprintf("mirador gate run -f %s --head %s", o.file, quoted(o.head))
	for _, flag := range []struct{ name, value string }{{"--ready", o.Ready}, {"--load", o.Load}} {
		if flag.value != "" {
			again += " " + flag.name + " " + quoted(flag.value)
		}
	}
	if o.For > 0 {
		again += " --for " + o.For.String()
	}
	fmt.Fprintf(g.streams.Out, "%s is written; read it, and run: %s\n", o.file, again)
	return nil
}

// quoted quotes a word for the shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// defineRun defines the flags that say how a program runs.
func (o *gateOptions) defineRun(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.head, "head", "", "the program: a command, or a process id")
	flags.StringVar(&o.Load, "load", "", "a shell command that loads a server, and ends")
	flags.StringVar(&o.Ready, "ready", "", "a shell command that succeeds when the server answers")
	flags.DurationVar(&o.For, "for", 0, "measure for this time, not until the program ends")
	flags.IntVar(&o.Runs, "runs", 9, "how often to measure times")
	flags.BoolVar(&o.Follow, "follow", false, "include the processes that the programs fork")
	flags.DurationVar(&o.longest, "max-time", 10*time.Minute, "give up after this time")
}
