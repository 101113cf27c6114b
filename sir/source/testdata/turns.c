/* Loops, branches and calls in unusual forms. */
#include <stdio.h>
#include <stdlib.h>
#include "turns.h"

typedef int (*function)(int);
static int (*hook)(int);

static int twice(int n) { return 2 * n; }

static int limit(int n) { return n + 3; }

int
(parenthesized)(int n)
{
	while (n > 3)
		n--;
	return n;
}

function select_function(int n)
{
	return n > 1 ? twice : limit;
}

static int (*pointer(int n))(int)
{
	for (int i = limit(n); i < limit(7); i += limit(1))
		n += twice(i);
	return n > 1 ? twice : limit;
}

static int once(int n)
{
	do {
		n++;
	} while (0);
	for (;;) {
		n += limit(n);
		break;
	}
	while (1) {
		if (n++ < 7)
			continue;
		break;
	}
	return n;
}

static int macros(struct item *list)
{
	struct item *i;
	int sum = 0;
	for_each_item (i, list) {
		sum += i->value;
		UP_TO(k, 3)
			sum += k;
	}
	return sum;
}

static int kinds(int n, function f)
{
	int sum = 0;
	switch (n) {
	case 0:
		sum = hook(n);
		break;
	case 1: {
		for (int i = 0; i < n; i++)
			sum += f(i);
		break;
	}
	default:
		sum = twice(twice(n));
	}
	if (n > 3)
		do
			sum += twice(n);
		while (--n);
	else if (n > 2)
		for (; n; n--)
			;
	else
		while (n-- > 0) { sum++; }
	return sum;
}

#if 0
static int gone(void) { for (;;) { } }
#elif defined(__linux__)
static int here(int n) { while (n--) hook = twice; return n; }
#endif

int main(int argc, char **argv)
{
	struct item list = { NULL, argc };
	(void)argv;
	here(argc);
	printf("%d\n", once(argc) + macros(&list) + kinds(argc, twice) + pointer(1)(2) + positive(&list) + parenthesized(3) + (select_function(argc))(1));
	return EXIT_SUCCESS;
}
