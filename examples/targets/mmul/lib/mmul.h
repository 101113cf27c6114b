/* Declarations that mmul and its library share: the counters of a thread's calls,
 * and the functions in the library. */
#ifndef MMUL_H
#define MMUL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function below counts its own calls, at its beginning. Only its thread
 * writes a counter; another thread that reads it while that thread works gets a
 * value that may be slightly outdated. */
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

/* digest is the sum of c, with each element weighted by its row and column. */
uint64_t digest(const double *c, int n);

/* expected is the digest of the product of a and b, without multiplying them. */
uint64_t expected(const double *a, const double *b, int n);

/* careful calls risky and catches its exception: 1 if it threw, else 0. */
int careful(int round);

/* calm executes C++ code that throws nothing. */
int calm(int round);

#ifdef __cplusplus
}
#endif

#endif
