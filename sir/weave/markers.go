package weave

import (
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
	b.WriteString(markerNote("0", "weaving:"+w.id))
	b.WriteString(procedure(noTail, ""))
	for i, list := range regions {
		if w.sources[i].Language != "fortran" {
			continue
		}
		for _, l := range list {
			b.WriteString(procedure(markerName('b', w.id, l.ID), "begin:"+l.name()))
			b.WriteString(procedure(markerName('e', w.id, l.ID), "end:"+l.name()))
		}
	}
	return []File{{Source: at, Suffix: ".mirador.s", Text: []byte(b.String())}}
}

const markersHead = `/* Regions that Mirador has woven into sources in Fortran begin and end in these procedures, at an instruction
   nop with a note about its address, as sys/sdt.h writes them. Compile this file with the sources, and link it. */
	.section .note.GNU-stack,"",@progbits
	.section .note.gnu.property,"a"
	.balign 8
	.4byte 4, 16, 5
	.asciz "GNU"
	.4byte 0xc0000002, 4, 3, 0
	.section .stapsdt.base,"aG",@progbits,.stapsdt.base,comdat
	.weak _.stapsdt.base
	.hidden _.stapsdt.base
_.stapsdt.base:
	.space 1
	.size _.stapsdt.base, 1
	.text
`

// procedure returns a procedure with a marker at its beginning, if it has a name. Compilers of Fortran add up to two
// underscores to the name of a procedure. There is room for a jump in place of the marker.
func procedure(name, marker string) string {
	note := ""
	if marker != "" {
		note = "990:	nop; nop; nop; nop; nop\n" + markerNote("990b", marker)
	}
	binding := ".globl"
	if marker == "" {
		binding = ".weak"
	}
	return fmt.Sprintf(`	.balign 16
	%[2]s %[1]s, %[1]s_, %[1]s__
	.hidden %[1]s, %[1]s_, %[1]s__
	.type %[1]s, @function
	.type %[1]s_, @function
	.type %[1]s__, @function
%[1]s:
%[1]s_:
%[1]s__:
	.cfi_startproc
%[3]s	ret
	.cfi_endproc
	.size %[1]s, .-%[1]s
	.size %[1]s_, .-%[1]s_
	.size %[1]s__, .-%[1]s__
`, name, binding, note)
}

// markerNote returns a note of SystemTap's form.
func markerNote(address, text string) string {
	return fmt.Sprintf(`	.pushsection .note.stapsdt,"","note"
	.balign 4
	.4byte 992f-991f, 994f-993f, 3
991:	.asciz "stapsdt"
992:	.balign 4
993:	.8byte %s, _.stapsdt.base, 0
	.asciz "mirador"
	.asciz "%s"
	.asciz ""
994:	.balign 4
	.popsection
`, address, strings.ReplaceAll(inAssembly(text), `\\`, `\`))
}
