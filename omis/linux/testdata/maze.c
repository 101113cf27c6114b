// maze [ROUNDS]: after a line on standard input, goes many ways through code of many shapes, while a timer
// interrupts it all the time, and prints a sum that shows whether all results are right.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define KEEP __attribute__((noinline))

KEEP uint64_t work(uint64_t x) { return x * 6364136223846793005ull + 1; }

// A jump table.
KEEP uint64_t choose(unsigned kind, uint64_t x) {
	switch (kind) {
	case 0: return x + 1;
	case 1: return x ^ 0x55;
	case 2: return x << 3;
	case 3: x -= 7; // and on
	case 4: return work(x);
	case 5: return x / 3;
	case 6: return x % 1001;
	case 7: return ~x;
	case 8: return x >> 5;
	default: return kind;
	}
}

// A table of labels.
KEEP uint64_t interpret(const unsigned char *code, uint64_t x) {
	static void *const labels[] = {&&add, &&mul, &&rot, &&back, &&end};
	int rounds = 3;
#define NEXT goto *labels[*code++]
	NEXT;
add: x += *code++; NEXT;
mul: x *= 2862933555777941757ull; NEXT;
rot: x = x << 7 | x >> 57; NEXT;
back:
	if (--rounds) {
		code -= *code;
		NEXT;
	}
	code++;
	NEXT;
end: return x;
}

// A loop whose head is where the function begins.
KEEP unsigned length(const char *s) {
	unsigned n = 0;
	while (*s++)
		n++;
	return n;
}

KEEP uint64_t sum(int n, ...) {
	va_list ap;
	double d = 0;
	uint64_t s = 0;
	va_start(ap, n);
	for (int i = 0; i < n; i++) {
		s += va_arg(ap, int);
		d += va_arg(ap, double);
	}
	va_end(ap);
	return s + (uint64_t)d;
}

KEEP int nothing(void) { return 0; }
KEEP int identity(int x) { return x; }
KEEP uint64_t tail(uint64_t x) { return work(x + 1); }
KEEP uint64_t deep(int n, uint64_t x) { return n ? deep(n - 1, work(x)) + n : x; }

static jmp_buf place;
KEEP void leap(int n) {
	if (n == 0)
		longjmp(place, 7);
	leap(n - 1);
}
KEEP uint64_t leaper(uint64_t x) {
	volatile uint64_t kept = x;
	if (setjmp(place) == 0)
		leap(5);
	return kept + 1;
}

KEEP int order(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static volatile uint64_t ticks;
KEEP void tick(int sig) { ticks += choose(sig % 9, ticks) | 1; }

static uint64_t (*volatile pointers[])(uint64_t) = {work, tail, leaper};

int main(int argc, char **argv) {
	static const unsigned char code[] = {0, 5, 1, 2, 0, 9, 3, 7, 1, 4};
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	struct sigaction act = {.sa_handler = tick, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &act, 0);
	struct itimerval often = {{0, 200}, {0, 200}};
	setitimer(ITIMER_REAL, &often, 0);
	uint64_t x = 42;
	uint32_t list[64];
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	char text[32];
	for (int i = 0; i < rounds; i++) {
		x = choose(i % 11, x) + interpret(code, x);
		x += deep(i % 20, x) + leaper(x) + nothing() + identity(i);
		x ^= sum(3, i, 1.5, 2, 2.5, (int)(x & 0xff), 3.0);
		for (int k = 0; k < 64; k++)
			list[k] = (x = work(x)) >> 32;
		qsort(list, 64, sizeof *list, order);
		x += list[i % 64] + pointers[i % 3](x);
		snprintf(text, sizeof text, "%llx", (unsigned long long)x);
		x += length(text) + strlen(text);
	}
	memset(&often, 0, sizeof often);
	setitimer(ITIMER_REAL, &often, 0);
	printf("sum %llx\n", (unsigned long long)x);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
