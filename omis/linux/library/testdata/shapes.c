#include "shapes.h"
#include <stdio.h>
#include <string.h>

int integers(char a, unsigned char b, short c, unsigned d, long e, unsigned long f, int g, signed char h, _Bool i)
{
	return a + b + c + (int)d + (int)e + (int)f + g + h + i > 0 ? -5 : -6;
}
double floats(float a, double b, int c, double d, double e, double f, double g, double h, double i, double j, float k)
{
	return a + b + c + d + e + f + g + h + i + j + k;
}
long double extended(int a, long double b, long c) { return (long double)a * b + (long double)c; }
const char *strings(const char *a, char *b, const unsigned char *none)
{
	return none ? a : b;
}
struct point points(struct point a, struct mixed b, struct small c, struct large d, enum colour e)
{
	return (struct point){a.x + b.d, a.y + (double)(b.n + c.s + d.n[4] + (long)e)};
}
struct large makes(int n)
{
	struct large l;
	for (int i = 0; i < 5; i++)
		l.n[i] = n + i;
	return l;
}
struct mixed mixes(struct bits b, long last)
{
	return (struct mixed){(long)(b.a + b.c) + last, b.f};
}
void nothing(void *p, int *q, int (*f)(int)) { (void)p, (void)q, (void)f; }
int various(const char *format, ...) { return (int)strlen(format); }
int inner(int n) { return n * 3; }
int outer(int n) { return inner(n + 1) + 1; } /* calls through the linkage table */
__int128 wide(__int128 a, int b) { return a + b; }
float _Complex complicated(float _Complex a, double _Complex b) { return a + (float _Complex)b; }

int versioned_old(int n) { return n + 1; }
int versioned_new(int n) { return n + 2; }
__asm__(".symver versioned_old, versioned@SHAPES_1");
__asm__(".symver versioned_new, versioned@@SHAPES_2");

static int chosen_slowly(int n) { return n * 10; }
static int chosen_fast(int n) { return n * 100; }
static int (*choose(void))(int)
{
	return __builtin_cpu_supports("sse2") ? chosen_fast : chosen_slowly;
}
int chosen(int n) __attribute__((ifunc("choose")));
