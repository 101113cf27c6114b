package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mirador/sir/source/apart"
)

// sourcesCommand is the command of this program that a gateway starts to read sources.
const sourcesCommand = "sources"

func sourcesSelf() []string { return []string{"/proc/self/exe", sourcesCommand} }

func newSources(*globals) *cobra.Command {
	return &cobra.Command{
		Use:   sourcesCommand,
		Short: "Read the structure of sources (started by the gateway)",
		Long: `The gateway starts this process for a request that names source files. It has limits of
memory and time and no rights, because files may be made to harm those that parse them.
It gets the files from the gateway over its standard input, and is of no use by itself.`,
		Example: "  mirador serve    # starts one when it needs it",
		Hidden:  true,
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return apart.Serve(os.Stdin, os.Stdout)
		},
	}
}
