/* A C program that has the same result in every round. Its functions keep values where code between their
   instructions, or a kernel that interrupts them, could destroy them: below the stack pointer, in the flags and in
   vector registers. Functions named counted_ count their calls. */
#include <stdint.h>
#include <stdio.h>

#define ALONE __attribute__((noinline, noclone, noipa, used))

static long counted_step_calls, counted_scale_calls;

/* A leaf: all its variables are below the stack pointer. */
ALONE uint64_t fragile_red(uint64_t x) {
	volatile uint64_t a[12];
	for (int i = 0; i < 12; i++)
		a[i] = x += 0x9e3779b97f4a7c15 + i;
	uint64_t sum = 0;
	for (int i = 11; i >= 0; i--)
		sum = sum * 31 + a[i];
	return sum;
}

/* The same around a nop, which the kernel may replace by a call. */
ALONE uint64_t fragile_nop(uint64_t x) {
	volatile uint64_t a = x, b = x * 3;
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0");
	uint64_t sum = a + b;
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0");
	return sum * 5 + a;
}

/* A sum of six words, whose carry is in the flags from its first instruction to its last. */
ALONE uint64_t fragile_flags(uint64_t x, uint64_t y) {
	uint64_t high = 0, low = x, signs = 0;
	__asm__ volatile("add %[y], %[low]\n\tmov %[x], %%rax\n\tmov %%rax, %%rcx\n\tadc %[y], %%rax\n\tlea (%%rax,%%rcx,2), %%rcx\n\tnop\n\t"
			 "adc %%rcx, %[low]\n\tmov %[low], %%rdx\n\tsbb %[x], %%rdx\n\tseto %%cl\n\tmovzbl %%cl, %%ecx\n\tpushf\n\tlea 1(%%rcx), %%rcx\n\tpopf\n\t"
			 "adc %%rdx, %[high]\n\tsetc %%al\n\tsets %%dl\n\tsetp %%ch\n\tmovzbl %%al, %%eax\n\tmovzwl %%cx, %%ecx\n\tmovzbl %%dl, %%edx\n\t"
			 "lea (%%rax,%%rdx,2), %[signs]\n\tlea (%[signs],%%rcx,4), %[signs]"
			 : [high] "+r"(high), [low] "+r"(low), [signs] "+r"(signs)
			 : [x] "r"(x), [y] "r"(y)
			 : "rax", "rcx", "rdx", "cc", "memory");
	return high * 31 + low * 7 + signs;
}

/* Eight vector registers are in use throughout. */
ALONE double fragile_xmm(double a, double b, double c, double d, double e, double f, double g, double h) {
	for (int i = 0; i < 3; i++) {
		double t = a;
		a = b * 0.5 + c, b = c * 0.25 - d, c = d + e * 0.125, d = e - f * 0.5;
		e = f * 0.75 + g, f = g - h * 0.0625, g = h + t, h = t * 0.5 - a;
	}
	return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + g * 13 + h * 17;
}

ALONE uint64_t counted_step(uint64_t x) {
	counted_step_calls++;
	x ^= x >> 31;
	return x * 0xff51afd7ed558ccd;
}

/* Called through a variable, because the compiler would replace the recursion by a loop. */
static uint64_t (*volatile scale)(uint64_t, unsigned);

ALONE uint64_t counted_scale(uint64_t x, unsigned n) {
	counted_scale_calls++;
	return n < 2 ? x : scale(x * 3 + 1, n / 2) + 1;
}

int main(void) {
	scale = counted_scale;
	for (int c; (c = getchar()) != EOF;) {
		if (c != '\n')
			continue;
		uint64_t x = 1;
		for (int i = 0; i < 2000; i++) {
			x = counted_step(x + fragile_red(x) + fragile_nop(x));
			x += fragile_flags(x, x * 5 + i);
			double r = fragile_xmm(x % 1000, 2, i, 4.5, 5, x % 77, 7, 8);
			x += (uint64_t)(int64_t)r;
			if (i % 50 == 0)
				x = counted_scale(x, x % 4096);
		}
		printf("%016llx counted_step=%ld counted_scale=%ld\n", (unsigned long long)x, counted_step_calls, counted_scale_calls);
		counted_step_calls = counted_scale_calls = 0;
		fflush(stdout);
	}
}
