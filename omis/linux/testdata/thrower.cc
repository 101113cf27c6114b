// thrower: after a line on standard input, two threads call risky 300 times each, which throws once in three; sort, by
// a comparison that throws once in three; and hop, which ends with a jump into hopped. They print what they caught.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>

extern "C" {
__attribute__((noinline)) uint64_t work(uint64_t x) { return x; }

__attribute__((noinline)) long risky(long x) {
	if (x % 3 == 0)
		throw std::runtime_error("risky");
	asm volatile("");
	return x;
}

__attribute__((noinline)) long hopped(long x) {
	asm volatile("");
	return x + 1;
}

__attribute__((noinline)) long hop(long x) { return hopped(x * 2); }
}

static __thread long round_;

static int compare(const void *a, const void *b) {
	if (round_ % 3 == 0)
		throw round_;
	return *(const int *)a - *(const int *)b;
}

static void *run(void *) {
	long caught = 0, sum = 0;
	for (round_ = 0; round_ < 300; round_++) {
		try {
			sum += risky(round_);
		} catch (const std::exception &) {
			caught++;
		}
		try {
			int v[3] = {3, 1, 2};
			qsort(v, 3, sizeof v[0], compare);
			sum += v[0];
		} catch (long) {
			caught++;
		}
		sum += hop(round_);
	}
	return (void *)(caught * 1000000 + sum);
}

int main() {
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	pthread_t t[2];
	void *r[2];
	for (auto &thread : t)
		pthread_create(&thread, 0, run, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &r[i]);
	printf("caught %ld %ld\n", (long)r[0], (long)r[1]);
	fflush(stdout);
	while (getchar() != EOF)
		;
}
