// steps [ROUNDS]: after a line on standard input the first thread runs begin, whose instructions are to be stepped:
// 23 instructions from first to last, two calls among them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void begin(void);
void inner(void);
extern char last[];
__asm__(".text\n"
	".globl begin, inner, last\n"
	"inner:\n"
	"	nop\n"
	"	pushfq\n"
	"	popfq\n"
	"	ret\n"
	"begin:\n"
	"	push %rbx\n"
	"	mov $3, %ebx\n"
	"1:	call inner\n"
	"	dec %ebx\n"
	"	jnz 1b\n"
	"	mov $39, %eax\n"
	"	syscall\n"
	"last:\n"
	"	pop %rbx\n"
	"	ret\n");

uint64_t work(uint64_t x) { return x; }

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	printf("ready %p\n", (void *)begin);
	printf("%p %p\n", (void *)inner, (void *)last);
	fflush(stdout);
	getchar();
	for (long i = 0; i < rounds; i++)
		begin();
	printf("done\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
