package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir/client"
)

// completes gives a flag its completion.
func completes(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag
	}
}

func (g *globals) completeProbes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, (*client.Client).Probes, func(p client.Status) string {
		return p.ID + "\t" + strings.Join(p.Metrics, ",") + " " + p.Region
	})
}

func (g *globals) completeMetrics(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, (*client.Client).Catalog, func(m client.Metric) string { return m.Name + "\t" + m.Doc })
}

func (g *globals) completeApps(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, (*client.Client).Apps, func(a client.App) string { return a.Name })
}

// complete returns words from a list of the gateway. It waits for at most a second, because
// a shell waits for it.
func complete[T any](g *globals, cmd *cobra.Command, ask func(*client.Client, context.Context) ([]T, error), word func(T) string) (words []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	err := g.withGateway(func(c *client.Client) error {
		list, err := ask(c, ctx)
		for _, one := range list {
			words = append(words, word(one))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
