/* Functions with all kinds of exits. The names say what a test expects:
 * returns_N has at least N exits, tail_* is left by a jump when optimised,
 * switch_* contains a jump that does not leave, never_* does not return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone, used))

volatile int sink;

KEPT int returns_1(int x) { return x * 3 + sink; }

KEPT int returns_2(int x, const char *s)
{
	if (x < 0) {
		sink++;
		return -1;
	}
	for (int i = 0; i < x; i++)
		sink += s[i % 4];
	return sink;
}

KEPT int tail_direct(int x)
{
	sink = x;
	return returns_1(x + 1);
}

KEPT int tail_pointer(int (*f)(int), int x)
{
	sink = x;
	return f(x);
}

struct object { long header; int (*method)(int); };

KEPT int tail_method(struct object *o, int x)
{
	sink = x;
	return o->method(x);
}

/* A jump table in .rodata. */
KEPT int switch_dense(int x, int y)
{
	switch (x) {
	case 0: return y + 11;
	case 1: sink = y; return y * 7;
	case 2: return y - sink;
	case 3: sink++; return 5;
	case 4: return y ^ 0x55;
	case 5: return returns_2(y, "abcd");
	case 6: sink = 9; break;
	case 7: return sink * y;
	case 8: sink -= y; break;
	}
	return sink;
}

KEPT int switch_goto(const unsigned char *program)
{
	static void *const op[] = {&&end, &&add, &&twice, &&drop};
	int value = 1;
	goto *op[*program++ & 3];
add:
	value += *program;
	goto *op[*program++ & 3];
twice:
	value *= 2 + sink;
	goto *op[*program++ & 3];
drop:
	value = sink;
	goto *op[*program++ & 3];
end:
	return value;
}

KEPT __attribute__((noreturn)) void never_returns(int x)
{
	fprintf(stderr, "%d\n", x);
	exit(x);
}

KEPT void never_ends(void)
{
	for (;;)
		sink++;
}

KEPT __attribute__((cold)) void complain(const char *s) { fputs(s, stderr); }

/* Its unlikely part is moved to NAME.cold. */
KEPT int unlikely_part(int x)
{
	if (__builtin_expect(x > 1000, 0)) {
		complain("large\n");
		sink = x;
		if (sink > 5000)
			complain("very large\n");
		return -x;
	}
	return x + sink;
}

/* Two names at one address. */
KEPT int well_known(int x) { return x - sink; }
extern int __internal_name(int) __attribute__((alias("well_known")));

/* An ifunc resolver, and the function that it selects. */
static int chosen_one(int x) { return x + 40 + sink; }
static void *resolve(void) { return (void *)chosen_one; }
int by_resolver(int) __attribute__((ifunc("resolve")));

/* Code followed by its own table, as in assembler code. */
int switch_table_behind(int);
__asm__(".text\n.globl switch_table_behind\n.type switch_table_behind,@function\n"
	"switch_table_behind:\n"
	"	and $3, %edi\n"
	"	lea 9f(%rip), %rdx\n"
	"	movslq (%rdx,%rdi,4), %rax\n"
	"	add %rdx, %rax\n"
	"	jmp *%rax\n"
	"1:	mov $1, %eax\n	ret\n"
	"2:	mov $2, %eax\n	ret\n"
	"9:	.long 1b - 9b, 2b - 9b, 1b - 9b, 0xc3c3c3c3\n"
	".size switch_table_behind, . - switch_table_behind\n");

int main(int argc, char **argv)
{
	struct object o = {0, returns_1};
	unsigned char program[] = {1, 2, 3, 0, 0};
	sink = returns_2(argc, argv[0]) + tail_direct(argc) + tail_pointer(returns_1, argc) + tail_method(&o, argc);
	sink += switch_dense(argc, 4) + switch_goto(program) + unlikely_part(argc) + by_resolver(argc);
	sink += __internal_name(argc) + switch_table_behind(argc & 1);
	if (argc > 100)
		never_returns(argc);
	if (argc > 200)
		never_ends();
	return 0;
}

/* The prologue aligns the stack pointer. */
KEPT int returns_aligned(int n)
{
	_Alignas(64) volatile char wide[64];
	int k = 0;
	for (int i = 0; i < n; i++) {
		wide[i % 64] = (char)i;
		k += wide[(i + 1) % 64] + returns_1(i);
	}
	return k;
}

/* The array moves the stack pointer in each iteration, and never back. */
KEPT int returns_arrays(int n)
{
	int k = 0;
	for (int i = 0; i < n; i++) {
		volatile char *some = __builtin_alloca((size_t)i + 16);
		some[i] = 1;
		k += returns_1(some[i]);
	}
	return k;
}
