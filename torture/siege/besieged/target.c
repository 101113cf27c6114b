// A program of ten thousand functions, f_0 to f_9999. It reads commands, and answers each with a line:
//
//	call N   call each function N times; the answer is their result
//	go       make a thread call functions
//	stop     stop that thread; the answer is the number of calls of each function
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The assembler makes them much faster than the compiler.
__asm__(
	".altmacro\n"
	".macro one n\n"
	".p2align 4\n"
	".globl f_\\n\n"
	".type f_\\n, @function\n"
	"f_\\n: push %rbp\n"
	"  mov %rsp, %rbp\n"
	"  imul $1103515245, %rdi, %rax\n"
	"  add $10000 + \\n, %rax\n"
	"  pop %rbp\n"
	"  ret\n"
	".size f_\\n, .-f_\\n\n"
	".pushsection .data.rel.ro, \"aw\"\n"
	".quad f_\\n\n"
	".popsection\n"
	".endm\n"
	".pushsection .data.rel.ro, \"aw\"\n"
	".p2align 3\n"
	"all:\n"
	".popsection\n"
	".text\n"
	".set i, 0\n"
	".rept 10000\n"
	"one %i\n"
	".set i, i+1\n"
	".endr\n"
	".noaltmacro\n");

enum { count = 10000, few = 100 };

extern unsigned long (*const all[count])(unsigned long);

static atomic_int going, busy;
static long calls;
static volatile unsigned long sink;

static unsigned long call(long times, int some) {
	unsigned long x = 1;
	for (long i = 0; i < times; i++)
		for (int k = 0; k < some; k++)
			x = all[k](x);
	return x;
}

static void *work(void *arg) {
	for (;;) {
		atomic_store(&busy, 1);
		if (atomic_load(&going)) {
			sink = call(1, few);
			calls++;
		}
		atomic_store(&busy, 0);
		usleep(1000);
	}
	return arg;
}

int main(void) {
	char line[64];
	long times;
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "call %ld", &times) == 1)
			printf("%lu\n", call(times, count));
		else {
			atomic_store(&going, !strcmp(line, "go\n"));
			while (!atomic_load(&going) && atomic_load(&busy))
				usleep(100);
			printf("%ld\n", calls);
		}
		fflush(stdout);
	}
	return 0;
}
