package cli

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir/client"
	"mirador/sir"
)

const (
	// completionPatience bounds how long a completion takes, because a shell waits for it.
	completionPatience = 2 * time.Second
	// mostCompleted bounds the units that a completion offers: a program may have 100,000.
	mostCompleted = 200
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

func (g *globals) completeLabels(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	words, directive := complete(g, cmd, (*client.Client).Probes, func(p client.Status) string { return p.Label })
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(label string) bool { return label == "" }), directive
}

func (g *globals) completeMetrics(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, (*client.Client).Catalog, func(m client.Metric) string {
		if m.Unavailable != "" {
			return ""
		}
		return m.Name + "\t" + m.Doc
	})
}

func (g *globals) completeApps(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(g, cmd, (*client.Client).Apps, func(a client.App) string { return a.Name })
}

// completeUnits completes the id of a unit. As long as several programs are possible, it offers
// the programs.
func (g *globals) completeUnits(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	app := cmd.Flag("app").Value.String()
	var programs, units []string
	_, directive := complete(g, cmd, func(c *client.Client, ctx context.Context) ([]sir.Program, error) {
		part, err := c.FindUnits(ctx, app, typed, mostCompleted)
		if err != nil {
			return nil, err
		}
		return part.Programs, nil
	}, func(p sir.Program) string {
		if name := prefixOf(&p); strings.HasPrefix(name, typed) || strings.HasPrefix(typed, name) {
			programs = append(programs, name)
		}
		for _, r := range p.Regions {
			units = append(units, r.ID+"\t"+r.Name)
		}
		units = append(units, allOf(typed, &p)...)
		return ""
	})
	if len(programs) > 1 {
		return programs, directive | cobra.ShellCompDirectiveNoSpace
	}
	return units, directive
}

// allOf completes the id of a function with all places where it is inlined, which no structure contains. Something
// inside the function matches what was typed.
func allOf(typed string, p *sir.Program) []string {
	slash := strings.LastIndexByte(typed, '/')
	if slash < 0 || !strings.HasPrefix(sir.AllSuffix, typed[slash:]) || !slices.ContainsFunc(p.Regions, func(r sir.Region) bool {
		return r.Kind != sir.Function && strings.LastIndexByte(r.ID, '/') == slash
	}) {
		return nil
	}
	return []string{typed[:slash] + sir.AllSuffix + "\tand all places where it is inlined"}
}

// prefixOf returns the part that is the same in the ids of all units of a program.
func prefixOf(p *sir.Program) string {
	name := path.Base(p.Path)
	if len(p.Regions) > 0 {
		name, _, _ = strings.Cut(p.Regions[0].ID, ":")
	}
	return name + ":"
}

// complete returns words from a list of the gateway; an empty word is none.
func complete[T any](g *globals, cmd *cobra.Command, ask func(*client.Client, context.Context) ([]T, error), word func(T) string) (words []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	err := g.withGateway(func(c *client.Client) error {
		list, err := ask(c, ctx)
		for _, one := range list {
			if w := word(one); w != "" {
				words = append(words, w)
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
