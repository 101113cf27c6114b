package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis"
	"mirador/omis/node"
)

func newStacks(g *globals) *cobra.Command {
	var asJSON, goroutines bool
	var depth int
	var only string
	cmd := &cobra.Command{
		Use:   "stacks NAME [--depth N] [--thread THREAD] [--goroutines] [--json]",
		Short: "Print the threads of an application and their stacks",
		Long: `Prints the threads of an application: token, number in Linux, name, state and call stack, the
innermost frame first. The threads of a process are stopped together for less than a
millisecond. A thread is running (or could, if there were a processor for it), waiting, stopped
or ended; the state is read just before the stack.

With --goroutines it also prints the goroutines of Go programs that have their debug
information.`,
		Example:           "  mirador stacks mmul\n  mirador stacks mmul --thread t_2 --depth 50\n  mirador stacks mmul --json | jq '.[].stack[0]'",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, args []string) error {
			if depth <= 0 {
				return usagef("--depth must be positive")
			}
			list, err := answer(g, func(c *client.Client) ([]stack, error) {
				return stacks(cmd.Context(), c, args[0], mir.SnapshotRequest{Named: true, Stack: depth, Goroutines: goroutines})
			})
			if err != nil {
				return err
			}
			if list = stacksOf(list, only); len(list) == 0 && only != "" {
				return fmt.Errorf("%s has no thread %q; \"mirador stacks %[1]s --depth 1\" lists them", args[0], only)
			}
			if asJSON {
				return printJSON(g.streams.Out, list)
			}
			return printStacks(g, list)
		},
	}
	cmd.Flags().IntVar(&depth, "depth", 32, "the most frames of a stack")
	cmd.Flags().StringVar(&only, "thread", "", "only this thread, by its token, number or name")
	cmd.Flags().BoolVar(&goroutines, "goroutines", false, "also the goroutines of Go programs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// stack is the stack of a thread or a goroutine.
type stack struct {
	Process   string   `json:"process"` // its token
	Program   string   `json:"-"`       // what the process calls itself
	Thread    string   `json:"thread,omitempty"`
	TID       int64    `json:"tid,omitempty"`
	Goroutine string   `json:"goroutine,omitempty"`
	Name      string   `json:"name,omitempty"`
	State     string   `json:"state,omitempty"`
	Stack     []string `json:"stack"`
}

// stacks asks for the threads, and then for their stacks. A thread that began in between has no number and no state.
func stacks(ctx context.Context, c *client.Client, app string, r mir.SnapshotRequest) ([]stack, error) {
	threads, err := threadStates(ctx, c, app)
	if err != nil {
		return nil, err
	}
	snapshot, err := c.Snapshot(ctx, app, r)
	if err != nil {
		return nil, err
	}
	list := []stack{}
	var add func(process *mir.Entity, entities []mir.Entity)
	add = func(process *mir.Entity, entities []mir.Entity) {
		for i := range entities {
			e := &entities[i]
			switch e.Kind {
			case mir.Process:
				add(e, e.Children)
				for _, o := range e.Goroutines {
					list = append(list, stack{
						Process: e.ID, Program: e.Name, Goroutine: o.ID, Thread: o.Thread, State: strings.TrimSuffix(o.State+", "+o.Reason, ", "), Stack: o.Stack,
					})
				}
			case mir.Thread:
				s := threads[e.ID]
				s.Process, s.Program, s.Thread, s.Name, s.Stack = process.ID, process.Name, e.ID, e.Name, e.Stack
				list = append(list, s)
			default:
				add(process, e.Children)
			}
		}
	}
	add(nil, snapshot.Entities)
	return list, nil
}

// states are the names of scheduling states.
var states = map[int64]string{
	node.StateRunning: "running", node.StateBlocked: "waiting", node.StateRunnable: "running", node.StateZombie: "ended", node.StateStopped: "stopped",
}

// threadStates returns the numbers and states of an application's threads by their tokens.
func threadStates(ctx context.Context, c *client.Client, app string) (map[string]stack, error) {
	request := fmt.Sprintf(": thread_get_info([],%#x)", node.ThreadLocalID|node.ThreadSchedulingState)
	reply, err := c.Do(ctx, client.Request{
		Method: http.MethodPost, Path: "/omis?tool=" + url.QueryEscape(app), Type: "text/plain", Accept: "application/xml", Body: []byte(request),
	})
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, err
	}
	results, err := client.ParseReply(reply.Body)
	if err = cmp.Or(err, results.Err()); err != nil {
		return nil, err
	}
	threads := make(map[string]stack)
	for _, result := range results[1:] {
		for _, r := range result {
			addStates(threads, &r)
		}
	}
	return threads, nil
}

func addStates(threads map[string]stack, r *omis.ObjectResult) {
	if len(r.Values) != 2 {
		return
	}
	tid, _ := r.Values[0].Int64()
	state, _ := r.Values[1].Int64()
	for _, token := range r.Objects {
		threads[string(token)] = stack{TID: tid, State: states[state]}
	}
}

// stacksOf returns the stacks of a thread, all of them if only is "".
func stacksOf(all []stack, only string) []stack {
	list := []stack{}
	for _, s := range all {
		if only == "" || only == s.Thread || only == s.Name || only == fmt.Sprint(s.TID) {
			list = append(list, s)
		}
	}
	return list
}

func printStacks(g *globals, list []stack) error {
	var text strings.Builder
	for i, s := range list {
		if i == 0 || s.Process != list[i-1].Process {
			fmt.Fprintf(&text, "process %s  %s\n", s.Process, plainCell(s.Program))
		}
		fmt.Fprintf(&text, "\n%s\n", plainCell(s.heading()))
		for i, frame := range s.Stack {
			fmt.Fprintf(&text, "  #%-2d %s\n", i, plainCell(frame))
		}
	}
	_, err := fmt.Fprint(g.streams.Out, text.String())
	return err
}

func (s *stack) heading() string {
	if s.Goroutine != "" {
		return strings.TrimSuffix(fmt.Sprintf("goroutine %s  %s  %s", s.Goroutine, s.State, s.Thread), "  ")
	}
	return fmt.Sprintf("%s  %d  %s  %s", s.Thread, s.TID, s.Name, s.State)
}
