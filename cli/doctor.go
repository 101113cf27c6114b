package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mirador/cli/doctor"
)

func newDoctor(g *globals) *cobra.Command {
	var format tableFormat
	var clean []string
	var all bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what works on this machine",
		Long: `Tries what Mirador uses of this machine, without a gateway: tracing, memory, BPF,
performance counters, and the programs that some of its features need. It reports
what works, what does not and why, and what to do. The exit status is 1 if a basic
check fails: tracing own processes, reading their memory, writing to it.

Probes of a killed gateway continue to measure, and slow down their targets as much as
before, until a gateway with the same --data adopts them. If no gateway will, --clean
removes them, and --clean-all removes the probes of all killed gateways. A gateway that
starts removes the probes of killed gateways whose data directories do not exist any more.`,
		Example: "  mirador doctor\n  mirador doctor --json\n  mirador doctor --clean /var/lib/mirador",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, data := range clean {
				if err := doctor.Clean(data, registrarSelf()); err != nil {
					return err
				}
			}
			if all {
				if err := doctor.CleanAll(registrarSelf()); err != nil {
					return err
				}
			}
			watch := watchChecks(g.streams)
			found := doctor.Examine(cmd.Context(), watch.show)
			watch.clear()
			colour := !format.json && !format.xml && isTerminal(g.streams.Out)
			err := printTable(g.streams.Out, format, table[doctor.Check]{
				root: "doctor", row: "check", rows: found, header: []string{"STATE", "CHECK", "WHY"}, coloured: colour,
				cells: func(c doctor.Check) []string { return checkCells(c, colour) },
			})
			if err != nil {
				return err
			}
			if !doctor.Healthy(found) {
				return silentFailure{errors.New("the basics do not work")}
			}
			return nil
		},
	}
	format.flags(cmd)
	cmd.Flags().BoolVar(&all, "clean-all", false, "remove what all killed gateways have left in the kernel, whatever data directories they used, before looking")
	cmd.Flags().StringArrayVar(&clean, "clean", nil, "a data directory: remove what a killed gateway that used it has left in the kernel, before looking")
	return cmd
}

// checkCells puts the advice into the same cell as the reason, because the reason is long.
func checkCells(c doctor.Check, colour bool) []string {
	why := c.Why
	if c.State != doctor.OK && c.Do != "" {
		why += ". To do: " + c.Do
	}
	state := string(c.State)
	if colour {
		state = paint(c.State)
	}
	return []string{state, c.Name, plainCell(why)}
}

// paint pads the state itself, because a tabwriter would count the escape sequences.
func paint(s doctor.State) string {
	code := map[doctor.State]int{doctor.OK: 32, doctor.Limited: 33, doctor.Missing: 31}[s]
	return fmt.Sprintf("\x1b[%dm%-7s\x1b[0m", code, s)
}

// checkWatch shows on a terminal which check was done last, because all checks together take longer
// than a second.
type checkWatch struct{ streams *Streams }

func watchChecks(s Streams) checkWatch {
	if !isTerminal(s.Err) {
		return checkWatch{}
	}
	return checkWatch{&s}
}

func (w checkWatch) show(c doctor.Check) {
	if w.streams != nil {
		fmt.Fprintf(w.streams.Err, "\r\x1b[K%s: %s", c.Name, c.State)
	}
}

func (w checkWatch) clear() {
	if w.streams != nil {
		fmt.Fprint(w.streams.Err, "\r\x1b[K")
	}
}
