package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mirador/omis/place/kernel/registrar"
)

// registrarCommand is the command of this program that a monitor starts as its registrar.
const registrarCommand = "registrar"

func registrarSelf() []string { return []string{"/proc/self/exe", registrarCommand} }

// registrarName is the name of the registrar in ps.
const registrarName = "mirador-uprobes"

func newRegistrar(*globals) *cobra.Command {
	return &cobra.Command{
		Use:   registrarCommand,
		Short: "Set and remove uprobes (started by the monitor)",
		Long: `The registrar is a small process that the monitor starts when it sets its first
uprobe. It sets and removes all uprobes, so that the kernel keeps none if the monitor
is killed meanwhile. When the monitor is gone, the registrar completes what it is doing,
and ends. It communicates with its monitor over its standard input and is of no use by
itself.`,
		Example: "  mirador serve    # starts one when it needs it",
		Hidden:  true,
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			// prctl would set the name of this thread, which may not be the main thread.
			if err := os.WriteFile("/proc/self/comm", []byte(registrarName), 0); err != nil {
				return fmt.Errorf("cannot name the registrar: %w", err)
			}
			return registrar.Run(os.Stdin)
		},
	}
}
