/* What mmul and its library share: the counters a thread keeps of its own calls,
 * and the parts of the work that live in the library. */
#ifndef MMUL_H
#define MMUL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function below counts its own calls, at its beginning. A counter is
 * written by its thread alone; whoever reads it from another thread while that
 * one works gets a value that was true a moment ago. */
#define COUNTED(count) \
	count(dot)         \
	count(multiply)    \
	count(fill)        \
	count(transpose)   \
	count(calm)        \
	count(careful)     \
	count(risky)       \
	count(thrown)

struct counts {
#define MEMBER(function) volatile uint64_t function;
	COUNTED(MEMBER)
#undef MEMBER
};

extern __thread struct counts counts;

/* fill sets the n*n elements of m from the seed, to whole numbers 0 to 255. */
void fill(double *m, int n, uint64_t seed);

/* transpose sets t to the transposed m. */
void transpose(double *t, const double *m, int n);

/* digest sums up c, every element with a weight of its row and of its column. */
uint64_t digest(const double *c, int n);

/* expected is the digest of the product of a and b, without multiplying them. */
uint64_t expected(const double *a, const double *b, int n);

/* careful calls what may throw, and catches it: 1 if it threw, else 0. */
int careful(int round);

/* calm does C++ things that throw nothing. */
int calm(int round);

#ifdef __cplusplus
}
#endif

#endif
