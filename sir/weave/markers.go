package weave

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// markersOfFortran returns a file in assembly language with the procedures that woven sources in Fortran call, beside
// the first of them.
func markersOfFortran(w *Weaving, regions [][]*located) []File {
	at := slices.IndexFunc(w.sources, func(s Source) bool { return s.Language == "fortran" && !s.Fixed })
	if at < 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(markersHead)
	fmt.Fprintf(&b, "\tmirador_note 0, \"weaving:%s\"\n\tmirador_procedure .weak, %s\n", w.id, noTail)
	for i, list := range regions {
		if w.sources[i].Language != "fortran" {
			continue
		}
		for _, l := range list {
			name := strings.ReplaceAll(inAssembly(l.name()), `\\`, `\`)
			fmt.Fprintf(&b, "\tmirador_region %s, \"begin:%s\"\n", markerName('b', w.id, l.ID), name)
			fmt.Fprintf(&b, "\tmirador_region %s, \"end:%s\"\n", markerName('e', w.id, l.ID), name)
		}
	}
	return []File{{Source: at, Suffix: ".mirador.s", Text: []byte(b.String())}}
}

// markersHead defines procedures with a marker. Compilers of Fortran add up to two underscores to the name of a procedure.
// There is room for a jump in place of the marker.
//
//go:embed markers.as
var markersHead string
