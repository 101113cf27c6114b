/* marked obeys lines with two numbers: it runs marked loops, and prints how often. Its markers are
   static probes, as sys/sdt.h writes them. */
#include <stdio.h>

#define NOTE(provider, name, semaphore) \
	__asm__ volatile("990: nop\n" \
	".pushsection .note.stapsdt,\"?\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n 992: .balign 4\n 993: .8byte 990b\n .8byte _.stapsdt.base\n .8byte " semaphore "\n" \
	".asciz \"" provider "\"\n .asciz \"" name "\"\n .asciz \"\"\n 994: .balign 4\n .popsection\n" \
	".ifndef _.stapsdt.base\n .pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n .hidden _.stapsdt.base\n _.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif")
#define MARK(name) NOTE("marked", name, "0")

unsigned short wanted __attribute__((section(".probes")));

__attribute__((noinline)) static int turn(int n, volatile int *m)
{
	int found = 0;
	MARK("begin");
	for (int i = 0; i < n; i++) {
		MARK("round");
		for (int k = 0; k < *m; k++)
			found++;
		if (i % 2)
			MARK("odd");
	}
	if (n > 100) {
		MARK("end");
		return found;
	}
	MARK("end");
	if (wanted)
		NOTE("marked", "seldom", "wanted");
	return found;
}

int main(void)
{
	int n, m;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (scanf("%d %d", &n, &m) == 2)
		printf("%d\n", turn(n, &m));
	return 0;
}
