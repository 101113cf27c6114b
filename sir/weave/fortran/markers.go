package fortran

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"mirador/sir/weave/woven"
)

// Beside returns a file in assembly language with the procedures that woven sources call, beside
// the first of them.
func Beside(p *woven.Program, regions [][]*woven.Region) []woven.File {
	at := slices.IndexFunc(p.Sources, func(s woven.Source) bool { return s.Language == "fortran" && !s.Fixed })
	if at < 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(markersHead)
	fmt.Fprintf(&b, "\tmirador_note 0, \"weaving:%s\"\n\tmirador_procedure .weak, %s\n", p.ID, noTail)
	for i, list := range regions {
		if p.Sources[i].Language != "fortran" {
			continue
		}
		for _, l := range list {
			name := strings.ReplaceAll(woven.InAssembly(l.Note()), `\\`, `\`)
			fmt.Fprintf(&b, "\tmirador_region %s, \"begin:%s\"\n", woven.MarkerName(woven.Begins, p.ID, l.ID), name)
			fmt.Fprintf(&b, "\tmirador_region %s, \"end:%s\"\n", woven.MarkerName(woven.Ends, p.ID, l.ID), name)
		}
	}
	return []woven.File{{Source: at, Suffix: ".mirador.s", Text: []byte(b.String())}}
}

// markersHead defines procedures with a marker. Compilers of Fortran add up to two underscores to the name of a procedure.
// There is room for a jump in place of the marker.
//
//go:embed markers.as
var markersHead string
