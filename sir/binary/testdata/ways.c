/* ways leaves its regions in all ways of C. Tests weave all regions that can be woven: a loop, a choice and a
   block follow a statement that is executed as often, and what is in braces begins with one. */
#include <stdio.h>
#include <stdlib.h>
#ifdef __GNUC__
#define QUIET __attribute__((noinline))
#else
#define QUIET
#endif

static int total;

QUIET static int scale(int n)
{
	total += n;
	return n % 7;
}

static inline int small(int n)
{
	total++;
	if (n > 3)
		return n - 3;
	return 3 - n;
}

/* A function with several ends. */
QUIET int search(const int *list, int n, int wanted)
{
	int at = 0;
	for (at = 0; at < n; at++) {
		total++;
		if (list[at] == wanted)
			return at; /* a "return" { in a loop */
		total++;
		if (list[at] < 0) {
			total--;
			goto negative;
		}
		total += 2;
	}
	return -1;
negative:
	total -= 10;
	return -2;
}

QUIET static char *text(int kind)
{
	char *found = "{";
	switch (kind & 3) {
	case 0:
		found = "zero";
		break;
	case 1: {
		found = "one";
		break;
	}
	case 2:
	default:
		total += scale(kind) + '1' - '0';
	}
	return found;
}

int main(void)
{
	int list[] = {4, 8, 15, 16, -23, 42};
	int n = 0;
	total = 1;
	do {
		total++;
		if (n % 5 == 4) {
			total += 4;
			continue;
		}
		total++;
		if (n % 2)
			scale(n);
		else if (n % 3 == 0) {
			total += 3;
		} else
			total += small(n);
	} while (++n < 10);
	total++;
	for (int i = 0, k = 1; i < 5; i++, k += 2) {
		total += k;
		for (int j = 0; j < i; ++j)
			total += search(list, (i + j) % 6 + 1, 3 * j + k / 2);
		total++;
		while (scale(k) == 3) {
			total++;
			break;
		}
	}
	n = 14;
	while (n-- > 0 && (total & 1023)) {
		total += text(n)[0];
		total++;
		{
			total += small(n);
		}
		total++;
		if (n == 11)
			goto out;
	}
out:
	printf("%d %s %d\n", total, text(2), scale(total));
	return total < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
