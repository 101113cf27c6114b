/* Branches of all kinds. The program prints a number, and does the same in each run. */
#include <setjmp.h>
#include <stdio.h>

static volatile int input = 7;
static int sum;
#define SKIP(c) if (c) continue

__attribute__((noinline)) static int work(int x) { sum += x; return sum & 7; }

static int sign(int x) {
	if (x < 0) return -1;
	else if (x == 0) { work(0); return 0; }
	return 1;
}

__attribute__((noinline)) static int chosen(int kind) {
	int r = 0;
	switch (kind) {
	case 0: case 1:
		r = work(1);
		break;
	case 2:
		r = work(2); /* goes on */
	case 3: {
		r += work(3);
		if (r > 9) return r;
		break;
	}
	case ':':
		r = work(4); break;
	default:
		work(5);
	}
	return r;
}

__attribute__((noinline)) static int nested(int a, int b) {
	if (a > 2 &&
	    (b & 1 || a == 5)) {
		for (int i = 0; i < b; i++) {
			if (i == 3) break;
			work(i);
		}
	} else {
		if (a < b) work(6); else work(7);
		while (b > 0 && work(b) < 5)
			b -= 2;
	}
	return a ? b : work(a);
}

__attribute__((noinline)) static int jumps(int n) {
	int found = 0;
	for (int i = 0; i < n; i++) {
		SKIP(i % 3 == 1);
		if (i == 4) goto middle;
		if (i % 2) {
	middle:
			found += work(i);
		}
		int least = found;
		if (i < least) least = i;
		sum += least;
	}
	return found;
}

static jmp_buf back;

__attribute__((noinline)) static void fails(int n) { if (n % 4 == 3) longjmp(back, 1); }

__attribute__((noinline)) static int loops(int n) {
	int at = 0, left = n;
	fails(n);
	while (left > 0 &&
	       (work(left) != 9 || left == 2))
		left -= 2;
	while (work(1), left++ < n) { sum++; }
	for (;;) {
		while (work(at) < 3 && at < n)
			at++;
		if (++at > n) break;
	}
	do {
		while (left > 1)
			left--;
		left -= 1;
	} while (left > -n);
	do { if (at % 3 == 0) continue; sum += at; } while (--at > 0);
	for (at = 0; at < 3; at++) {
		if (work(at) == n) continue;
		sum--;
	}
	while (at < n && work(at)) at += 2;
	return at;
}

/* The outcome of the test is known behind continue. */
__attribute__((noinline)) static int known(int left) {
	while (left > 0) {
		left -= 2;
		if (left == 3) continue;
		sum += left;
	}
	return sum;
}

/* Blocks that follow themselves, that a goto or a label leads into, and that are left in the middle. */
__attribute__((noinline)) static int blocks(int n) {
	int i = 0;
	for (;;) {
		{
			if (++i > n) break;
			work(i);
		}
	}
	for (;;) { { if (--i < 0) break; } work(i); }
	for (i = 0; i < 4; i++) { { sum += i; } }
	{ int at = n; while (at > 0) { at -= 2; } }
	{
		do { i--; } while (i > 0);
	}
	while (i < n) {
		{
			if (i++ & 1) continue;
			work(i);
		}
		work(2);
	}
	if (n > 3) goto in;
	{
		work(7);
	in:
		work(8);
	}
	switch (n & 3) {
	case 0: { work(1); break; }
	case 1: { work(2); }
	case 2: { { work(3); } work(4); }
	}
	{ if (n == 2) return i; }
	{ return work(n); }
}

static int tried(int n) { return setjmp(back) ? -1 : loops(n); }

int main(void) {
	for (int i = -4; i < 20; i++) {
		work(sign(i) + sign(input - i));
		chosen(i % 6 + (i == 9 ? ':' - 3 : 0));
		nested(i, input);
		sum += tried(i) + known(i) + blocks(i);
	}
	printf("%d\n", jumps(input) + sum);
	return 0;
}
