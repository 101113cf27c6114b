package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mirador/omis/linux/warden"
)

// wardenCommand is the command of this program that a monitor starts as its warden.
const wardenCommand = "warden"

func newWarden(*globals) *cobra.Command {
	return &cobra.Command{
		Use:   wardenCommand,
		Short: "Remove breakpoints when the monitor dies (started by the monitor)",
		Long: `The warden is a small process that the monitor starts when it plants its first
breakpoint. When the monitor is gone, for any reason, the warden restores the targets'
code, and ends. It communicates with its monitor over its standard input and is of no
use by itself.`,
		Example: "  mirador serve    # starts one when it needs it",
		Hidden:  true,
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return warden.Run(os.Stdin)
		},
	}
}
