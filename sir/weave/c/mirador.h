/* Regions that Mirador has woven into this source begin and end at an instruction nop with a note
   about its address, as sys/sdt.h writes them. A region is a variable whose end of life is the end of
   the region, whatever way control takes. The variable is in memory, so that the stack pointer is the
   same at both. On other machines and systems regions have no code. */
#ifndef MIRADOR_MARK
#if defined(__x86_64__) && defined(__ELF__) && defined(__LP64__)
#define MIRADOR_NOTE(address, text) \
	".pushsection .note.stapsdt,\"?\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n 992: .balign 4\n 993: .8byte " address "\n .8byte _.stapsdt.base\n .8byte 0\n" \
	" .asciz \"mirador\"\n .asciz \"" text "\"\n .asciz \"\"\n 994: .balign 4\n .popsection\n" \
	".ifndef _.stapsdt.base\n .pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	" .weak _.stapsdt.base\n .hidden _.stapsdt.base\n _.stapsdt.base: .space 1\n" \
	" .size _.stapsdt.base, 1\n .popsection\n .endif\n"
#if __GNUC__ > 8 || __clang_major__ > 10
#define MIRADOR_ASM __asm__ __volatile__ __inline__
#else
#define MIRADOR_ASM __asm__ __volatile__
#endif
#define MIRADOR_MARK(text, at) MIRADOR_ASM("990: nop\n" MIRADOR_NOTE("990b", text) : "=m"(*(at)) : : "memory")
#define MIRADOR_WEAVING(id) __asm__(MIRADOR_NOTE("0", "weaving:" id));
#else
#define MIRADOR_MARK(text, at) (void)(at)
#define MIRADOR_WEAVING(id)
#endif
#if defined(__cplusplus)
#define MIRADOR_INLINE inline __attribute__((__always_inline__))
#else
#define MIRADOR_INLINE extern __inline__ __attribute__((__always_inline__, __gnu_inline__))
#endif
#define MIRADOR_DEFINE(n, what) \
	MIRADOR_INLINE void mirador_end_##n(char *at); \
	MIRADOR_INLINE void mirador_end_##n(char *at) { MIRADOR_MARK("end:" what, at); } \
	MIRADOR_INLINE char mirador_begin_##n(char *at); \
	MIRADOR_INLINE char mirador_begin_##n(char *at) { MIRADOR_MARK("begin:" what, at); return 0; }
#define MIRADOR_REGION(n) \
	char mirador_region_##n __attribute__((__cleanup__(mirador_end_##n), __unused__)), \
		mirador_begun_##n __attribute__((__unused__)) = mirador_begin_##n(&mirador_region_##n);
#endif
