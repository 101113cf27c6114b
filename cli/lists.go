package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	gateway "mirador/http"
	"mirador/mir/client"
)

func newCatalog(g *globals) *cobra.Command {
	var format tableFormat
	var word string
	var here bool
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "List the metrics",
		Long:    "Lists the metrics that an instrumentation request may name: unit, kind, what they are measured for and how. A metric that this machine cannot measure is listed with the reason. With --json or --xml it also shows how each is measured, what that costs and what it needs.",
		Example: "  mirador catalog\n  mirador catalog --grep fault\n  mirador catalog --available\n  mirador catalog --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := answer(g, func(c *client.Client) ([]client.Metric, error) { return c.Catalog(cmd.Context()) })
			if err != nil {
				return err
			}
			if here {
				rows = available(rows)
			}
			return printTable(g.streams.Out, format, table[client.Metric]{
				root: "catalog", row: "metric", rows: matching(rows, word), header: []string{"SPACE", "NAME", "UNIT", "KIND", "ENTITIES", "REGION", "WHAT"},
				cells: func(m client.Metric) []string {
					var entities []string
					for _, kind := range m.Entities {
						entities = append(entities, string(kind))
					}
					return []string{m.Space, m.Name, m.Unit, m.Kind, strings.Join(entities, ","), strconv.FormatBool(m.Region), what(&m)}
				},
			})
		},
	}
	format.flags(cmd)
	cmd.Flags().StringVar(&word, "grep", "", "list only the metrics whose name, meaning or measurement contains this `word`")
	cmd.Flags().BoolVar(&here, "available", false, "list only the metrics that this machine can measure; the others are listed with the reason")
	return cmd
}

func newServices(g *globals) *cobra.Command {
	var format tableFormat
	cmd := &cobra.Command{
		Use:     "services",
		Short:   "List the OMIS services",
		Long:    "Lists the services that an OMIS request may name: kind, the role that may call them, whether they may run where the event is recognised, prototype and meaning.",
		Example: "  mirador services\n  mirador services --xml",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := g.services(cmd.Context())
			if err != nil {
				return err
			}
			return printTable(g.streams.Out, format, table[gateway.Service]{
				root: "services", row: "service", rows: rows, header: []string{"NAME", "KIND", "ROLE", "SUPPORT", "LOCAL", "PROTOTYPE", "WHAT"},
				cells: func(s gateway.Service) []string {
					return []string{s.Name, s.Kind, s.Role, s.Support, strconv.FormatBool(s.Local), s.Prototype, s.Doc}
				},
			})
		},
	}
	format.flags(cmd)
	return cmd
}
