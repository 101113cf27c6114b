package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	gateway "mirador/http"
)

// tableFormat says how a command prints a table: as text, JSON or XML.
type tableFormat struct{ json, xml bool }

func (f *tableFormat) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&f.xml, "xml", false, "print XML")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.json && f.xml {
			return usagef("--json and --xml exclude each other")
		}
		return nil
	}
}

// table contains rows and a function that prints each row as text.
type table[T any] struct {
	root, row string // names of the XML elements
	rows      []T
	header    []string
	cells     func(T) []string
	coloured  bool // the cells contain colour escapes, and no other escapes
}

func printTable[T any](w io.Writer, f tableFormat, t table[T]) error {
	switch {
	case f.json:
		return printJSON(w, t.rows)
	case f.xml:
		return gateway.WriteTable(w, t.root, t.row, t.rows)
	}
	columns := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	writeCells(columns, t.header)
	for _, row := range t.rows {
		cells := t.cells(row)
		if !t.coloured {
			for i := range cells {
				cells[i] = plainCell(cells[i])
			}
		}
		writeCells(columns, cells)
	}
	return columns.Flush()
}

func writeCells(w io.Writer, cells []string) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, cell)
	}
	fmt.Fprintln(w)
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
