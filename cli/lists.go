package cli

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	gateway "mirador/http"
	"mirador/mir/client"
)

func newCatalog(g *globals) *cobra.Command {
	var format tableFormat
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "List the metrics",
		Long:    "Lists the metrics that an instrumentation request may name: unit, kind, what they are measured for and how.",
		Example: "  mirador catalog\n  mirador catalog --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []gateway.Metric
			if err := g.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/catalog"}, &rows); err != nil {
				return err
			}
			return printTable(g.streams.Out, format, table[gateway.Metric]{
				root: "catalog", row: "metric", rows: rows, header: []string{"NAME", "UNIT", "KIND", "ENTITIES", "REGION", "WHAT"},
				cells: func(m gateway.Metric) []string {
					var entities []string
					for _, kind := range m.Entities {
						entities = append(entities, string(kind))
					}
					return []string{m.Name, m.Unit, m.Kind, strings.Join(entities, ","), strconv.FormatBool(m.Region), m.Doc}
				},
			})
		},
	}
	format.flags(cmd)
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
			var rows []gateway.Service
			if err := g.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/omis/services"}, &rows); err != nil {
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
