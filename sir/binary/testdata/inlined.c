/* Functions that gcc inlines. "counted NAME" is behind the first statement of each: gcov counts it. */
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone))

static volatile int sink, source = 3;

static inline int square(int v)
{
	return v * v + source; /* counted square */
}

static inline int clamp(int v, int low, int high)
{
	if (v < low) /* counted clamp */
		return low;
	if (v > high)
		return high;
	return v;
}

static inline int digits(unsigned v)
{
	int n = 0; /* counted digits */
	do {
		n++;
		v /= 10;
	} while (v != 0);
	return n;
}

static inline int twice(int v)
{
	sink = v; /* counted twice */
	return clamp(v, 2, 9) + clamp(v + source, 3, 7);
}

static inline void fill(int *list, int n)
{
	for (int i = 0; i < n; i++) /* begins fill */
		list[i] = source;
}

static inline int failing(int v)
{
	if (v % 11 == 10) /* counted failing */
		return -1;
	sink += v;
	return v;
}

static inline int pick(int kind, int v)
{
	switch (kind & 3) { /* counted pick */
	case 0:
		return v + source;
	case 1:
		return v ^ source;
	case 2:
		return square(v);
	default:
		return failing(v);
	}
}

KEPT static int sums(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += square(i);
	for (int i = 0; i < n; i++)
		if (i % 3)
			sum -= clamp(sum + i, 0, 100);
	return sum;
}

KEPT static int rows(int n)
{
	int list[16], sum = 0;
	fill(list, n);
	for (int i = 0; i < n; i++) {
		sum += digits(list[i] * 1000 + i) + twice(i);
		if (failing(sum) < 0)
			continue;
		sum += pick(i, sum);
	}
	fill(list, 3);
	return sum + list[0];
}

static inline int cube(int v)
{
	return v * v * v; /* counted cube */
}

KEPT static int cubes(const int *list, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += cube(list[i]);
	return sum;
}

KEPT static int pairs(int a, int b)
{
	return square(a) + square(b) + clamp(a, b, 100);
}

/* both is inlined, and called through a pointer. */
static int both(int v)
{
	sink = v; /* counted both */
	return v & 7;
}

static int (*volatile pointer)(int) = both;

/* scaled has a version for a constant argument, and is called through a pointer. */
__attribute__((noinline)) static int scaled(int v, int by)
{
	int sum = sink; /* counted scaled */
	for (int i = 0; i < by; i++)
		sum += v / (by + i) * (v % by);
	return sum;
}

static int (*volatile scale)(int, int) = scaled;

KEPT static int pointers(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum += both(i) + pointer(sum);
		if (i & 1)
			sum += pointer(i) + scaled(sum, 3) + scaled(i, 3) + scaled(-i, 3);
	}
	return sum + scale(sum, 4);
}

/* gcc makes two functions of slow, to inline its beginning, and then inlines the rest into slow again. */
int slow(int v)
{
	if (v < 0) { /* counted slow */
		sink++;
		return -1;
	}
	for (int i = 0; i < 3; i++) {
		sink += i;
		if (sink > 1000000000)
			abort();
	}
	printf("%d\n", sink + v);
	puts("slow");
	return sink;
}

KEPT static int slows(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += slow(i & 1 ? -1 : i);
	return sum;
}

int main(void)
{
	static int list[1000];
	for (int i = 0; i < 1000; i++)
		list[i] = i;
	int sum = cubes(list, source * 333);
	for (int i = 0; i < 13; i++) {
		sum += sums(i) + rows(i % 9);
		sum += pairs(i, sum) + pointers(i) + slows(i);
	}
	printf("%d\n", sum);
	return 0;
}
