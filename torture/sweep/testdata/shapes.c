// shapes first prints the addresses of all instructions. At "go" it calls every generated function with some states, and
// answers with a hash of what each has stored. From "busy" to "rest" another thread calls them too, and compares.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { words = 128, inputs = 6, most = 4096 };

typedef void shape(uint64_t *);

extern shape *shapes[], *shapes_end[];
extern uint64_t places[], places_end[];

uint64_t constants[8] = {1, 0x7fffffffffffffff, 0xdeadbeef, 3, 0x8000000000000000, 0x5555555555555555, 255, 0x123456789abcdef};

static uint64_t calm[most];
static atomic_int busy, running;
static atomic_long wrong = -1, calls;

static uint64_t hash(shape *f, uint64_t seed) {
	uint64_t state[words] __attribute__((aligned(32)));
	for (int i = 0; i < words; i++) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		state[i] = i < words / 2 ? seed : 0;
	}
	f(state);
	uint64_t h = 14695981039346656037u;
	for (int i = 0; i < words; i++)
		h = (h ^ state[i]) * 1099511628211u, h ^= h >> 29;
	return h;
}

static uint64_t all(int f) {
	uint64_t h = 0;
	for (int i = 0; i < inputs; i++)
		h = h * 31 + hash(shapes[f], 1000003 * (f + 1) + 7919 * (i + 1));
	return h;
}

static void *other(void *arg) {
	for (int f = 0;; f = (f + 1) % (shapes_end - shapes)) {
		running = 1;
		if (!busy) {
			running = 0;
			usleep(1000);
			continue;
		}
		if (all(f) != calm[f])
			wrong = f;
		calls++;
	}
	return arg;
}

int main(void) {
	char line[64];
	pthread_t thread;
	for (uint64_t *p = places; p < places_end; p++)
		printf("%lx ", (unsigned long)*p);
	printf("\n");
	fflush(stdout);
	for (int f = 0; f < shapes_end - shapes; f++)
		calm[f] = all(f);
	if (pthread_create(&thread, 0, other, 0))
		return 1;
	while (fgets(line, sizeof line, stdin)) {
		if (!strcmp(line, "busy\n"))
			busy = 1;
		else if (!strcmp(line, "rest\n"))
			for (busy = 0; running;)
				usleep(100);
		else
			for (int f = 0; f < shapes_end - shapes; f++)
				printf("%lx ", (unsigned long)all(f));
		printf("%ld\n", (long)wrong);
		fflush(stdout);
	}
}
