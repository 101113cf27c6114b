#include "work.h"

#include <stdlib.h>
#include <time.h>

/* dot is called often and is short: the scalar product of two rows. */
__attribute__((noinline)) double dot(const double *x, const double *y, int n)
{
	counts.dot++;
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* multiply is called rarely and takes long: c = a * b, with b given transposed. */
__attribute__((noinline)) void multiply(double *c, const double *a, const double *bt, int n)
{
	counts.multiply++;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			c[i * n + j] = dot(a + i * n, bt + j * n, n);
}

static void rest(long microseconds)
{
	struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
	nanosleep(&t, NULL);
}

void work(struct worker *w)
{
	int n = w->job->size;
	double *m = calloc(4 * (size_t)n * n, sizeof *m);
	if (!m)
		abort();
	double *a = m, *b = a + n * n, *bt = b + n * n, *c = bt + n * n;

	for (long round = 1; !w->job->stop && (!w->job->rounds || round <= w->job->rounds); round++) {
		uint64_t seed = (uint64_t)round * 1000003u + (uint64_t)w->number;
		fill(a, n, seed);
		fill(b, n, ~seed);
		transpose(bt, b, n);
		multiply(c, a, bt, n);
		uint64_t sum = digest(c, n);
		if (sum != expected(a, b, n))
			w->wrong++;
		w->checksum += sum + (uint64_t)careful((int)(round % 1000000)) + (uint64_t)calm((int)(round % 1000000));
		if (w->job->pace)
			rest(w->job->pace);
	}
	free(m);
}
