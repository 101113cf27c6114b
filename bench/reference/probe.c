/* A program whose functions are probed. It answers each line, a function's name and a
   number of calls, with the nanoseconds that so many calls took. The functions differ
   in their first instruction: the kernel emulates a push at a uprobe, and has to step
   over a mov. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

uint64_t pushed(uint64_t), moved(uint64_t);
extern char pushed_ret[], moved_ret[];

__asm__(
	".globl pushed, moved, pushed_ret, moved_ret\n"
	".type pushed, @function\n"
	".type moved, @function\n"
	"pushed: push %rbp\n"
	"  mov %rdi, %rax\n"
	"  mov $48, %ecx\n"
	"1: imul $1103515245, %rax, %rax\n"
	"  add $12345, %rax\n"
	"  dec %ecx\n"
	"  jnz 1b\n"
	"  pop %rbp\n"
	"pushed_ret: ret\n"
	".size pushed, .-pushed\n"
	"moved: mov %rdi, %rax\n"
	"  mov $48, %ecx\n"
	"1: imul $1103515245, %rax, %rax\n"
	"  add $12345, %rax\n"
	"  dec %ecx\n"
	"  jnz 1b\n"
	"moved_ret: ret\n"
	".size moved, .-moved\n");

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(void) {
	char line[100], name[20];
	long n;
	volatile uint64_t x = 1;
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p %p %p %p\n", (void *)pushed, (void *)pushed_ret, (void *)moved, (void *)moved_ret);
	while (fgets(line, sizeof line, stdin) && sscanf(line, "%19s %ld", name, &n) == 2) {
		int64_t begin = now();
		if (!strcmp(name, "pushed"))
			for (long i = 0; i < n; i++)
				x = pushed(x);
		else
			for (long i = 0; i < n; i++)
				x = moved(x);
		printf("%lld\n", (long long)(now() - begin));
	}
	return 0;
}
