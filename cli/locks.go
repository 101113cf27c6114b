package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir/client"
	"mirador/omis"
)

func newLocks(g *globals) *cobra.Command {
	var format tableFormat
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "locks NAME [--for TIME]",
		Short: "List the locks for which threads of an application wait",
		Long: `Lists the locks for which threads of an application wait at present, those with the most
waiting threads first: the address of each lock, the thread that holds it, and the threads that
wait. Locks of glibc and locks with inheritance of priorities show the thread that holds them.
With --for it looks again and again, and adds up by lock how long threads waited: an estimate, to
which short waits contribute by chance. No thread is stopped. The metrics BLOCKED_COUNT and
BLOCKED_TIME measure all waiting for locks.`,
		Example:           "  mirador locks mmul\n  mirador locks mmul --for 5s --json",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := answer(g, func(c *client.Client) ([]client.Lock, error) { return c.Locks(cmd.Context(), args[0]) })
			if err == nil && during > 0 {
				waits, err := answer(g, func(c *client.Client) ([]waits, error) { return addLocks(cmd.Context(), c, args[0], locks, during) })
				return errors.Join(err, printWaits(g, format, waits))
			}
			if err != nil {
				return err
			}
			return printTable(g.streams.Out, format, table[client.Lock]{
				root: "locks", row: "lock", rows: locks, header: []string{"PROCESS", "ADDRESS", "HOLDER", "WAITING"},
				cells: func(l client.Lock) []string {
					return []string{string(l.Process), l.Address, threadNumbers(l.Holder), threadNumbers(l.Waiting...)}
				},
			})
		},
	}
	format.flags(cmd)
	cmd.Flags().DurationVar(&during, "for", 0, "add up for this long how long threads wait")
	return cmd
}

// waits is how long threads have waited for a lock, by samples.
type waits struct {
	Process omis.Token `json:"process" xml:"process,attr"`
	PID     int        `json:"pid" xml:"pid,attr"`
	Address string     `json:"address" xml:"address,attr"`
	Holders []int      `json:"holders" xml:"holder"` // the threads that were seen to hold it, without unknown ones
	Seconds float64    `json:"waited_seconds" xml:"waited_seconds,attr"`

	since time.Duration
}

// locksEvery is the time between two samples.
const locksEvery = 5 * time.Millisecond

// addLocks adds up the waiting of threads by lock, the longest first. locks is the first sample.
func addLocks(ctx context.Context, c *client.Client, app string, locks []client.Lock, during time.Duration) (list []waits, err error) {
	byLock := make(map[string]*waits)
	begin := time.Now()
	for last := begin; last.Sub(begin) < during; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(locksEvery):
		}
		now := time.Now()
		for i := range locks {
			sumOf(byLock, &locks[i]).add(&locks[i], now.Sub(last))
		}
		if last = now; last.Sub(begin) < during {
			if locks, err = c.Locks(ctx, app); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range byLock {
		w.Seconds = w.since.Seconds()
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b waits) int {
		return cmp.Or(cmp.Compare(b.since, a.since), strings.Compare(a.Address, b.Address))
	})
	return list, nil
}

func sumOf(byLock map[string]*waits, l *client.Lock) *waits {
	key := string(l.Process) + " " + l.Address
	if byLock[key] == nil {
		byLock[key] = &waits{Process: l.Process, PID: l.PID, Address: l.Address, Holders: []int{}}
	}
	return byLock[key]
}

// add adds a sample: all its threads have waited for a time.
func (w *waits) add(l *client.Lock, took time.Duration) {
	w.since += took * time.Duration(len(l.Waiting))
	if l.Holder != 0 && !slices.Contains(w.Holders, l.Holder) {
		w.Holders = append(w.Holders, l.Holder)
	}
}

func printWaits(g *globals, format tableFormat, list []waits) error {
	return printTable(g.streams.Out, format, table[waits]{
		root: "locks", row: "lock", rows: list, header: []string{"PROCESS", "ADDRESS", "HOLDERS", "WAITED"},
		cells: func(w waits) []string {
			return []string{string(w.Process), w.Address, threadNumbers(w.Holders...), w.since.Round(time.Millisecond).String()}
		},
	})
}

// threadNumbers formats numbers of threads; 0 is an unknown one.
func threadNumbers(list ...int) string {
	texts := make([]string, len(list))
	for i, tid := range list {
		if texts[i] = strconv.Itoa(tid); tid == 0 {
			texts[i] = "?"
		}
	}
	return strings.Join(texts, ",")
}
