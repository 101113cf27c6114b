package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mirador/cli/gate/measure"
)

// keeperCommand is the command of this program that a gate starts as its keeper.
const keeperCommand = "keeper"

func newGateKeeper() *cobra.Command {
	return &cobra.Command{
		Use:   keeperCommand,
		Short: "End the programs of a gate that was killed (started by the gate)",
		Long: `The keeper is a small process that a gate starts. When the gate has ended, for any reason,
the keeper ends the programs that the gate has started and may have stopped. It
communicates with its gate over its standard input and is of no use by itself.`,
		Example: "  mirador gate run -f gate.xml --head ./shop    # starts one",
		Hidden:  true,
		Args:    arguments(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return measure.Keep(os.Stdin) },
	}
}
