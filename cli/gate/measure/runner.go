// Package measure runs the programs of a gate under a gateway and measures them: values of one
// program, and head against base by turns on one processor. It talks to the gateway by the
// client alone. Only the command line imports it.
//
// A Runner is used by one goroutine. It starts others, which wait for the ends of processes and
// end with them. The keeper is a process of its own: it cleans up after a gate that was killed.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/cli/gate/request"
	"mirador/mir/client"
)

// Side is what is measured: a command, or a running process.
type Side struct {
	Command string
	PID     int
	IsBase  bool // its source is not what the results are about

	injected []injection // by relative limit; see Slow
}

// Options say how to run the programs.
type Options struct {
	Load, Ready string        // shell commands for servers: what loads one, and what succeeds when it answers
	For         time.Duration // how long to measure programs that do not end; 0: until the end
	Runs        int           // how often to measure what varies
	Rounds      int           // of blocks, in each start
	Block       time.Duration // how long each program runs in a round, by turns
	Follow      bool          // include the processes that the programs fork
	Programs    []string      // names of the programs' files, which are equivalent in the ids of units
}

// Runner measures through one gateway.
type Runner struct {
	Options
	Client *client.Client
	Keeper *Keeper
	Dir    string                           // for the output of programs
	Note   func(format string, args ...any) // tells the user what happens, on a terminal; not nil
	Warn   func(format string, args ...any) // tells the user what may be wrong; any goroutine may call it; not nil
	Places map[string]Place                 // where the measured units are in the source of head

	Remarks []string // about the measurement, for the report

	weather weather
	biases  map[string]int64 // nanoseconds that are subtracted from the times of a unit
	sample  []int            // by relative limit: N if one call in N is timed
	started int              // number of programs, for their names
	clock   time.Time        // when the clock of the gateway was 0

	slowest []slowest // by relative limit

	reminder reminder

	processor unix.CPUSet // on which the programs of a start run by turns
}

// Place is where a unit begins in the source.
type Place struct {
	File string
	Line int
}

// Remark adds a remark for the report, unless the report has it already.
func (r *Runner) Remark(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Remarks, text) {
		r.Remarks = append(r.Remarks, text)
	}
}

// remarkPlacement says that a probe makes short times longer. The placement is how it works, and the cost is in nanoseconds.
func (r *Runner) remarkPlacement(l request.Limit, placement string, cost float64) {
	r.Remark("%s of %s: while it is timed, each call takes %.0f us more, because no probe inside the program is possible (placement: %s): short times are not exact", l.Metric, l.Region, cost/1000, placement)
}

// Bias returns what is subtracted from every time of a unit, in nanoseconds: what its probe adds.
func (r *Runner) Bias(region string) int64 { return r.biases[region] }

// subject is a program that is measured.
type subject struct {
	*watched
	app, name string // name of the application; of the program
	path      string // of the program's file
	pid       int
	own       bool // the gate has started it
	isBase    bool
	port      string // in its commands
	output    string // file of its output
	load      *load
	keeper    *Keeper
}

// start starts the program of a side, or attaches a running one. A program that is started waits to
// be continued.
func (r *Runner) start(ctx context.Context, s Side) (*subject, error) {
	r.started++
	name := fmt.Sprintf("gate-%d-%d", os.Getpid(), r.started)
	if s.Command == "" {
		app, err := r.Client.Create(ctx, client.AppRequest{Name: name, Attach: []int{s.PID}, Follow: r.Follow})
		if err != nil {
			return nil, err
		}
		t, err := r.subject(app, false)
		if t != nil {
			t.isBase = s.IsBase
		}
		return t, err
	}
	free, err := r.freePort(s.Command)
	if err != nil {
		return nil, err
	}
	launch, err := r.launchOf(strings.ReplaceAll(s.Command, port, free))
	if err != nil {
		return nil, err
	}
	app, err := r.Client.Create(ctx, client.AppRequest{Name: name, Launch: launch, Paused: true, Follow: r.Follow})
	if err != nil {
		return nil, err
	}
	t, err := r.subject(app, true)
	if err == nil {
		t.port, t.output, t.isBase = free, launch.Stdout, s.IsBase
	}
	return t, err
}

// subject returns the first process of an application.
func (r *Runner) subject(app client.App, own bool) (*subject, error) {
	if len(app.Processes) == 0 {
		return nil, errors.New("the gateway has started no process")
	}
	pid := app.Processes[0].PID
	w, err := watch(pid)
	if err != nil {
		return nil, err
	}
	t := &subject{watched: w, app: app.Name, pid: pid, own: own, keeper: r.Keeper}
	if own {
		err = r.Keeper.Kill(pid)
	}
	if t.path, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); t.path == "" && err == nil {
		err = fmt.Errorf("process %d ended before it was measured", pid)
	}
	if argv := app.Processes[0].Argv; len(argv) > 0 {
		t.name = filepath.Base(argv[0])
	}
	return t, err
}

// launchOf returns how to start a command in this directory, with its output in a file.
func (r *Runner) launchOf(command string) (*client.LaunchRequest, error) {
	argv, err := words(command)
	if err != nil {
		return nil, err
	}
	path, err := lookUp(argv[0])
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	out := filepath.Join(r.Dir, fmt.Sprintf("output-%d", r.started))
	return &client.LaunchRequest{Path: path, Args: argv[1:], Env: r.environment(), Dir: dir, Stdout: out, Stderr: out + ".err"}, nil
}

// environment returns the environment of the programs.
func (r *Runner) environment() []string { return append(os.Environ(), r.Keeper.mark) }

// finish ends a program that the gate has started. It removes the probes of a program that was already
// running.
func (r *Runner) finish(t *subject) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestStop)
	defer cancel()
	t.load.end(r.Keeper)
	err := r.Client.Release(ctx, t.app, t.own)
	if t.own {
		if err == nil {
			err = t.wait(ctx)
		}
		if err == nil {
			t.close()
			r.Keeper.Forget(t.pid)
		}
	}
	return err
}

// mostOutput is how much of a failed program's output is shown.
const mostOutput = 2000

// failed returns an error with the end of the program's output.
func (t *subject) failed(format string, args ...any) error {
	text := fmt.Sprintf("%s (process %d) %s", t.name, t.pid, fmt.Sprintf(format, args...))
	if t.own && t.hasEnded() {
		text += t.left()
	}
	for _, file := range []string{t.output, t.output + ".err"} {
		if out, err := os.ReadFile(file); err == nil && len(out) > 0 {
			text += "\n" + strings.TrimSpace(string(out[max(0, len(out)-mostOutput):]))
		}
	}
	return errors.New(text)
}
