/* Loops of many shapes. A comment behind a line names the loop: "loop NAME" behind the line of its
 * test, "before NAME" behind a line that is executed once for each execution of the loop, and
 * "inside NAME" behind one that is executed once for each iteration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone))

static volatile int sink;

KEPT static int sieve(char *is, int n)
{
	int found = 0;
	memset(is, 1, n); /* before sieve */
	for (int i = 2; i < n; i++) { /* loop sieve */
		if (!is[i]) /* inside sieve */
			continue;
		found++; /* before strike */
		for (int k = i + i; k < n; k += i) /* loop strike */
			is[k] = 0; /* inside strike */
	}
	return found;
}

KEPT static void insertion(int *a, int n)
{
	int i = 1;
	sink++; /* before sorted */
	while (i < n) { /* loop sorted */
		int v = a[i]; /* inside sorted */
		int k = i - 1; /* before shifted */
		while (k >= 0 && a[k] > v) { /* loop shifted */
			a[k + 1] = a[k]; /* inside shifted */
			k--;
		}
		a[k + 1] = v;
		i++;
	}
}

KEPT static int gcd(int a, int b)
{
	sink++; /* before gcd */
	while (b != 0) { /* loop gcd */
		int r = a % b; /* inside gcd */
		a = b;
		b = r;
	}
	return a;
}

KEPT static int digits(unsigned n)
{
	int count = 0; /* before digits */
	do {
		count++; /* inside digits */
		n /= 10;
	} while (n != 0); /* loop digits */
	return count;
}

struct node {
	struct node *next;
	int key;
};

KEPT static struct node *find(struct node *n, int key)
{
	sink++; /* before find */
	for (; n != NULL; n = n->next) { /* loop find */
		if (n->key == key) /* inside find */
			return n;
	}
	return NULL;
}

KEPT static int words(const char *s)
{
	int count = 0;
	sink++; /* before words */
	while (*s != '\0') { /* loop words */
		sink++; /* inside words */
		while (*s == ' ') /* loop blanks */
			s++; /* inside blanks */
		if (*s == '\0')
			break;
		count++;
		while (*s != '\0' && *s != ' ') /* loop letters */
			s++; /* inside letters */
	}
	return count;
}

KEPT static int machine(const char *code)
{
	int value = 0, at = 0;
	sink++; /* before machine */
	while (code[at] != 'h') { /* loop machine */
		sink++; /* inside machine */
		switch (code[at]) {
		case 'a':
			value += 3;
			break;
		case 'b':
			value -= 1;
			break;
		case 'c':
			value *= 2;
			break;
		case 'd':
			value ^= 5;
			break;
		case 'e':
			if (value > 100)
				return value;
			break;
		case 'f':
			sink = value;
			break;
		default:
			value = 0;
		}
		at++;
	}
	return value;
}

KEPT static int called(int x)
{
	sink += x;
	return sink & 7;
}

KEPT static int calls(int n)
{
	int sum = 0;
	sink++; /* before calls */
	for (int i = 0; i < n; i++) { /* loop calls */
		int c = called(i); /* inside calls */
		if (c == 3)
			continue;
		sum += called(c);
		if (sum > 300)
			break;
	}
	return sum;
}

KEPT static int pairs(int n)
{
	int found = 0;
	sink++; /* before outer */
	for (int i = 0; i < n; i++) /* loop outer */
		for (int k = i; k < n; k++) { /* loop inner */
			sink++; /* inside inner */
			if ((i * k) % 7 == 3)
				found++;
		}
	return found;
}

KEPT static unsigned backwards(const unsigned char *p, int n)
{
	unsigned h = 17;
	sink++; /* before backwards */
	for (int i = n - 1; i >= 0; i--) { /* loop backwards */
		h = h * 31 + p[i]; /* inside backwards */
		h ^= h >> 7;
	}
	return h;
}

KEPT static int collatz(unsigned n)
{
	int steps = 0;
	sink++; /* before collatz */
	while (n != 1) { /* loop collatz */
		steps++; /* inside collatz */
		if (n % 2 == 0)
			n /= 2;
		else
			n = 3 * n + 1;
	}
	return steps;
}

KEPT static int jumps(int n)
{
	int k = 0;
	sink++; /* before jumps */
again:
	k += sink & 1; /* inside jumps */
	sink++;
	if (k < n) /* loop jumps */
		goto again;
	return k;
}

/* Only the outcome of the test shows that control goes to the loop. */
KEPT static int halves(int n)
{
	int count = 0;
	if (n > 6) {
		do {
			count += n & 1; /* inside halves */
			n /= 2;
		} while (n > 0); /* loop halves */
		sink++; /* before halves */
	}
	return count;
}

int main(void)
{
	static char is[120];
	int a[] = {5, 2, 9, 1, 7, 7, 3, 8, 0, 4, 6};
	struct node list[9];
	int total = sieve(is, 100) + sieve(is, 2);
	insertion(a, 11);
	insertion(a, 0);
	for (int i = 0; i < 9; i++) {
		list[i].key = i * i;
		list[i].next = i < 8 ? &list[i + 1] : NULL;
	}
	for (int i = 0; i < 20; i++) {
		total += gcd(i * 12, 18 - i) + digits(i * i * i);
		total += find(i % 3 ? list : NULL, i) != NULL;
	}
	total += words("  the quick  brown fox jumps ") + words("") + words("one");
	total += machine("aabcdffaecbh") + machine("h") + machine("acccccccezh");
	total += calls(40) + calls(0) + calls(500) + pairs(9) + pairs(0);
	total += backwards((const unsigned char *)"counting", 8) + backwards(NULL, 0);
	for (unsigned i = 1; i < 12; i++)
		total += collatz(i) + jumps(i) + halves(i) + halves(-i);
	printf("%d %d\n", total, sink);
	return 0;
}
