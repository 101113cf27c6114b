// chain THREADS: every thread computes a chain of numbers for ever, and keeps
// how far it is beside what it has got, so that anybody can check it. "ready" is
// followed by the address of the function that makes a step, and "chains" by those
// of the results and of a count of SIGCONTs, and the process id.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile struct {
	uint64_t length, value;
} chains[64];
static volatile uint64_t continued;

__attribute__((noinline)) uint64_t step(uint64_t x) {
	return x * 6364136223846793005ull + 1442695040888963407ull;
}

static void *run(void *arg) {
	long id = (long)arg;
	for (;;) {
		uint64_t next = step(chains[id].value);
		// A reader in between finds a value one step ahead.
		chains[id].value = next;
		chains[id].length++;
		usleep(50);
	}
}

static void count(int sig) { continued++; }

int main(int argc, char **argv) {
	pthread_t t;
	signal(SIGCONT, count);
	for (long i = 0; i < atoi(argv[1]); i++)
		pthread_create(&t, 0, run, (void *)i);
	printf("ready %p\n", (void *)step);
	printf("chains %p %p %d\n", (void *)chains, (void *)&continued, getpid());
	fflush(stdout);
	for (;;)
		pause();
}
