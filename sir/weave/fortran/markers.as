/* Regions that Mirador has woven into sources in Fortran begin and end in procedures of this file, at an
   instruction nop with a note about its address, as sys/sdt.h writes them. Add the file to the command that compiles
   the sources. */
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

	.macro mirador_note address, text
	.pushsection .note.stapsdt,"","note"
	.balign 4
	.4byte 992f-991f, 994f-993f, 3
991:	.asciz "stapsdt"
992:	.balign 4
993:	.8byte \address, _.stapsdt.base, 0
	.asciz "mirador"
	.asciz "\text"
	.asciz ""
994:	.balign 4
	.popsection
	.endm

	.macro mirador_name binding, name
	\binding \name
	.hidden \name
	.type \name, @function
	.set \name, 989b
	.size \name, 988b-989b
	.endm

	.macro mirador_procedure binding, name, text
	.balign 16
989:	.cfi_startproc
	.ifnb \text
990:	nop; nop; nop; nop; nop
	mirador_note 990b, "\text"
	.endif
	ret
	.cfi_endproc
988:
	mirador_name \binding, \name
	mirador_name \binding, \name\()_
	mirador_name \binding, \name\()__
	.endm

	.macro mirador_region name, text
	mirador_procedure .globl, \name, "\text"
	.endm

