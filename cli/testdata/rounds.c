/* rounds obeys lines with two numbers: it runs a loop with a loop inside, and prints a result. */
#include <stdio.h>

static volatile int sink;

__attribute__((noinline)) int step(int k)
{
	sink += k;
	return sink & 1;
}

__attribute__((noinline)) int rounds(int n, volatile int *m)
{
	int found = 0;
	for (int i = 0; i < n; i++) {
		if (i % 3 == 2)
			continue;
		for (int k = 0; k < *m; k++)
			found += step(k);
	}
	return found;
}

/* kept is inlined and called through a pointer. */
static int kept(int v)
{
	sink += v & 4;
	return v;
}

static int (*volatile keeper)(int) = kept;

static inline int finished(int v)
{
	sink += v & 2;
	return v;
}

/* Only the outcome of the test in halved shows that control goes to the loop. */
__attribute__((noinline, optimize("O0"))) void halved(int n)
{
	if (n > 6)
		do {
			n /= 2;
			sink += n & 8;
		} while (n > 0);
}

int unfolded(int n);

int main(void)
{
	int n, m;
	setvbuf(stdout, NULL, _IOLBF, 0);
	keeper(0);
	puts("ready");
	while (scanf("%d %d", &n, &m) == 2) {
		halved(n);
		sink += unfolded(n);
		printf("%d\n", kept(finished(rounds(n, &m))));
	}
	return 0;
}
