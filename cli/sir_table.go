package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"mirador/sir"
)

// allRegions is more levels than programs have.
const allRegions = 1 << 20

// regionRow is a region in a table.
type regionRow struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Form      string `json:"form,omitempty"`
	Name      string `json:"name"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	EndLine   int    `json:"endLine,omitempty"`
	Callee    string `json:"callee,omitempty"`
	Uncounted string `json:"uncounted,omitempty"`
	Untimed   string `json:"untimed,omitempty"`
	Unknown   string `json:"unknown,omitempty"`
	// Placements are those in which the region can be counted, TimedIn those in which it can be timed.
	Placements []string     `json:"placements,omitempty"`
	TimedIn    []string     `json:"timedIn,omitempty"`
	Refusals   []refusalRow `json:"refusals,omitempty"`
	source     bool
	// InlinedInto are the functions that also contain code of this function. It is not counted with it.
	InlinedInto []string `json:"inlinedInto,omitempty"`
}

// refusalRow is the reason why a placement does not measure a region.
type refusalRow struct {
	Placement string      `json:"placement"`
	Of        sir.Measure `json:"of"` // count or time
	Address   string      `json:"address"`
	Reason    string      `json:"reason"`
}

// place adds the placements of a region.
func (r *regionRow) place(p *sir.Placements) {
	if p == nil {
		return
	}
	r.Uncounted, r.Untimed = cmp.Or(r.Uncounted, p.Uncounted), cmp.Or(r.Untimed, p.Untimed)
	r.Placements, r.TimedIn = p.Counted, p.Timed
	for _, x := range p.Refusals {
		r.Refusals = append(r.Refusals, refusalRow{x.Placement, x.Of, fmt.Sprintf("%#x", x.Address), x.Reason})
	}
}

// regionRows returns the regions of a structure, or of a part of a whole one with the same programs.
func regionRows(s, whole *sir.Structure) (rows []regionRow) {
	for i := range s.Programs {
		into := inlinedInto(&whole.Programs[i])
		for r := range s.Programs[i].All() {
			row := regionRow{ID: r.ID, Type: string(r.Kind), Form: r.Form, Name: r.Name, File: r.File, Line: r.Line, Unknown: r.Unknown}
			if x := r.Extent; x != nil {
				row.EndLine = x.EndLine
			}
			row.source = len(s.Programs[i].Resources) > 0
			if c := r.Code; c != nil {
				row.EndLine, row.Callee, row.Uncounted, row.Untimed = c.EndLine, c.Callee, c.Uncounted, c.Untimed
			}
			row.place(r.Placements)
			if r.Kind == sir.Function {
				row.InlinedInto = into[r.Symbol]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// inlinedInto returns the functions into which functions are inlined, by the symbols of the latter.
func inlinedInto(p *sir.Program) map[string][]string {
	into := make(map[string][]string)
	for i := range p.Regions {
		f := &p.Regions[i]
		whole := sir.Program{Regions: f.Regions}
		for r := range whole.All() {
			symbol := strings.TrimPrefix(r.Name, "inlined.")
			if known := into[symbol]; r.Kind == sir.Inlined && (len(known) == 0 || known[len(known)-1] != f.ID) {
				into[symbol] = append(known, f.ID)
			}
		}
	}
	return into
}

// widestID bounds the column of ids: a longer id, as of a template, moves only its own row.
const widestID = 48

// printRegions prints all regions of a structure, each before those inside it.
func printRegions(w io.Writer, f tableFormat, s, whole *sir.Structure) error {
	rows := regionRows(s, whole)
	if f.json {
		return printJSON(w, rows)
	}
	table := [][]string{{"ID", "TYPE", "LINES", "PLACEMENTS", "MEASURED"}}
	for _, r := range rows {
		table = append(table, []string{r.ID, strings.TrimSpace(r.Type + " " + r.Form), r.lines(), strings.Join(r.Placements, " "), r.measured()})
	}
	var widths [4]int // of all but the last column
	for _, row := range table {
		for i := range widths {
			if n := utf8.RuneCountInString(row[i]); i > 0 || n <= widestID {
				widths[i] = max(widths[i], n)
			}
		}
	}
	out := bufio.NewWriter(w)
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			if line.WriteString(plainCell(cell)); i < len(widths) {
				line.WriteString(strings.Repeat(" ", 2+max(0, widths[i]-utf8.RuneCountInString(cell))))
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
	return out.Flush()
}

// lines returns the region's place in the source, "" if it is not known.
func (r regionRow) lines() string {
	switch {
	case r.Line == 0:
		return ""
	case r.EndLine > r.Line:
		return fmt.Sprintf("%s:%d-%d", filepath.Base(r.File), r.Line, r.EndLine)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(r.File), r.Line)
}

// measured says what can be measured of a region, and why not more, and not in more placements.
func (r regionRow) measured() string {
	parts := make([]string, 0, 1+len(r.Refusals))
	if text := r.metrics(); text != "" {
		parts = append(parts, text)
	}
	for _, x := range r.Refusals {
		what := "not " + x.Placement
		if x.Of == sir.OfTime {
			what = "not timed " + x.Placement
		}
		parts = append(parts, what+": "+x.Reason)
	}
	return strings.Join(parts, "; ")
}

// metrics says what can be measured of a region, and why not more.
func (r regionRow) metrics() string {
	switch {
	case r.Unknown != "":
		return "regions inside not known: " + r.Unknown
	case len(r.InlinedInto) > 0:
		const most = 3
		return fmt.Sprintf("also inlined into %d functions: %s; %s is all of it", len(r.InlinedInto), strings.Join(r.InlinedInto[:min(len(r.InlinedInto), most)], ", "), r.ID+sir.AllSuffix)
	case r.source, r.Type == string(sir.Function) && r.Uncounted+r.Untimed == "":
		return ""
	case r.Type == string(sir.Marker) && r.Uncounted == "":
		return "count; time to another marker or function"
	case r.Uncounted != "":
		return "not counted: " + r.Uncounted
	case r.Untimed != "":
		return "count; not timed: " + r.Untimed
	}
	return "count, time"
}

// idsByLine returns the ids of the regions that begin at each line of a file.
func idsByLine(s *sir.Structure, is func(file string) bool) map[int][]string {
	at := make(map[int][]string)
	for _, r := range regionRows(s, s) {
		if r.Line > 0 && is(r.File) {
			at[r.Line] = append(at[r.Line], r.ID)
		}
	}
	return at
}

// printLines prints a source file. Before each line is whether it has code, and behind it are the ids of the
// regions at this line.
func printLines(w io.Writer, path string, s *sir.Structure, own map[int]*sir.Region) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	at := idsByLine(s, func(file string) bool { return file == path })
	if len(at) == 0 { // the program was compiled elsewhere
		at = idsByLine(s, func(file string) bool { return filepath.Base(file) == filepath.Base(path) })
	}
	if len(at) == 0 && len(own) == 0 {
		return fmt.Errorf("no region of these programs is in %s: were they compiled from it, with -g?", path)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text := strings.ReplaceAll(plainCell(strings.ReplaceAll(lines.Text(), "\t", "    ")), "\r", "")
		fmt.Fprintf(w, "%5d %s %-70s  %s\n", n, lineMark(own[n]), text, plainCell(strings.Join(at[n], "  ")))
	}
	return lines.Err()
}

// lineMark says whether a line has code, and can be counted.
func lineMark(r *sir.Region) string {
	switch {
	case r == nil:
		return " "
	case r.Code.Uncounted != "":
		return "-"
	}
	return "+"
}
