// work is the function that is watched; it takes about fifty nanoseconds.
#include <stdint.h>

__attribute__((noinline, noclone)) uint64_t work(uint64_t x) {
	__asm__ volatile("");
	for (int i = 0; i < 48; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}
