// steps [ROUNDS]: after a line on standard input the first thread runs begin, whose instructions are to be stepped:
// 23 instructions from first to last, two calls among them. With 0 ROUNDS it does so until SIGUSR1 comes.
#include <signal.h>
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

static volatile sig_atomic_t enough;

static void end(int sig) { enough = 1; }

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	printf("ready %p\n", (void *)begin);
	printf("%p %p\n", (void *)inner, (void *)last);
	fflush(stdout);
	signal(SIGUSR1, end);
	getchar();
	for (long i = 0; rounds ? i < rounds : !enough; i++)
		begin();
	printf("done\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
