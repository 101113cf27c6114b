package cli

import (
	"context"

	"github.com/spf13/cobra"

	"mirador/cli/gate/measure"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
)

func newGateSelfTest(g *globals) *cobra.Command {
	var o gateOptions
	var slowdown float64
	cmd := &cobra.Command{
		Use:   "self-test -f FILE --head CMD [flags]",
		Short: "Show that a gate fails and passes on this machine when it must",
		Long: `Compares the program --head with itself by the limits of the gate file on changes of times
(max-change). Without a change every limit must pass. Then probes slow the function of each
limit down by --slowdown, and every limit must fail. The program is not changed: the probe
at the beginning of the function executes an action many times that has no other effect, and whose
cost is measured before.

The exit status is 0 if the gate has judged all rightly, 4 if it has not, 5 if it was
inconclusive, because this machine is too noisy for the limit.`,
		Example: "  mirador gate self-test -f gate.xml --head ./shop-loop --slowdown 10",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			it, err := o.read()
			if err != nil {
				return err
			}
			limits := it.File.Of(request.Relative)
			if len(limits) == 0 {
				return usagef("%s has no max-change of a time, so there is nothing to try: numbers are exact on any machine", o.file)
			}
			o.base = o.head
			if err := o.sides(it); err != nil {
				return err
			}
			part := slowdown / 100
			for _, l := range limits {
				switch {
				case slowdown == 0:
					part = max(part, 3*l.Change)
				case part <= l.Change:
					return usagef("a slowdown of %g %% is within the limit in line %d, and would pass: give more", slowdown, l.Pos.Line)
				}
			}
			return o.judged(cmd.Context(), g, func(ctx context.Context, r *measure.Runner) (*report.Report, error) {
				it.Runner = r
				return it.SelfTest(ctx, part)
			})
		},
	}
	o.define(cmd)
	cmd.Flags().Float64Var(&slowdown, "slowdown", 0, "how much to slow down, in percent; 0 is three times the greatest limit")
	for _, name := range []string{"base", "layout-fails", "runs", "for"} {
		cmd.Flags().MarkHidden(name) // they have no meaning here
	}
	return cmd
}
