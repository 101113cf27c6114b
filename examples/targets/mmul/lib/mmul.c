/* libmmul creates matrices and checks products. All numbers are integers that
 * doubles represent exactly, so a result is either right or wrong. */
#include "mmul.h"

__thread struct counts counts;

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

void fill(double *m, int n, uint64_t seed)
{
	counts.fill++;
	for (int i = 0; i < n * n; i++)
		m[i] = (double)(next(&seed) & 255);
}

void transpose(double *t, const double *m, int n)
{
	counts.transpose++;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			t[j * n + i] = m[i * n + j];
}

static uint64_t row_weight(int i) { return 2u * (unsigned)i + 1u; }
static uint64_t column_weight(int j) { return 6u * (unsigned)j + 5u; }

uint64_t digest(const double *c, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			sum += row_weight(i) * column_weight(j) * (uint64_t)c[i * n + j];
	return sum;
}

/* sum over i,j of w(i) v(j) c(i,j) = sum over k of (sum over i of w(i) a(i,k)) *
 * (sum over j of v(j) b(k,j)) */
uint64_t expected(const double *a, const double *b, int n)
{
	uint64_t sum = 0;
	for (int k = 0; k < n; k++) {
		uint64_t column = 0, row = 0;
		for (int i = 0; i < n; i++) {
			column += row_weight(i) * (uint64_t)a[i * n + k];
			row += column_weight(i) * (uint64_t)b[k * n + i];
		}
		sum += column * row;
	}
	return sum;
}
