package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the man pages",
		Long:    "Writes a man page for each command into a folder.",
		Example: "  mirador man build/man",
		Hidden:  true,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			// A fixed date keeps the pages the same from build to build.
			date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
			return doc.GenManTree(root, &doc.GenManHeader{Title: "MIRADOR", Section: "1", Source: "Mirador", Manual: "Mirador", Date: &date}, args[0])
		},
	}
}
