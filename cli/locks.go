package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mirador/mir/client"
)

func newLocks(g *globals) *cobra.Command {
	var format tableFormat
	cmd := &cobra.Command{
		Use:   "locks NAME",
		Short: "List the locks for which threads of an application wait",
		Long: `Lists the locks for which threads of an application wait at present, those with the most
waiting threads first: the address of each lock, the thread that holds it, and the threads that
wait. Locks of glibc and locks with inheritance of priorities show the thread that holds them.
No thread is stopped. The metrics BLOCKED_COUNT and BLOCKED_TIME measure waiting for locks.`,
		Example:           "  mirador locks mmul\n  mirador locks mmul --json",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := answer(g, func(c *client.Client) ([]client.Lock, error) { return c.Locks(cmd.Context(), args[0]) })
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
	return cmd
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
