// changer drop ROUNDS | become FILE | ids: a target that changes its identity: it gives root's up in the
// middle of its work, or executes a program, FILE ids, which says who it is.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;
static int rounds;

__attribute__((noinline)) uint64_t work(uint64_t x) {
	__asm__ volatile("");
	return x * 3 + 1;
}

static void *hammer(void *arg) {
	for (int i = 0; i < rounds; i++)
		if (work(i) == (uint64_t)i * 3 + 1)
			calls++;
	return arg;
}

// drop gives root's identity up while three threads work.
static int drop(void) {
	enum { threads = 3, nobody = 65534 };
	pthread_t t[threads];
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, hammer, 0);
	usleep(2000);
	int bad = setgid(nobody) || setuid(nobody);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	hammer(0);
	return bad;
}

int main(int argc, char **argv) {
	if (argc < 2 || !strcmp(argv[1], "ids")) {
		printf("ids %d %d\n", getuid(), geteuid());
		fflush(stdout);
		return getchar() != EOF;
	}
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	if (!strcmp(argv[1], "become")) {
		execl(argv[2], argv[2], "ids", (char *)0);
		return 1;
	}
	rounds = atoi(argv[2]);
	int bad = drop();
	printf("calls %ld bad %d uid %d\n", (long)calls, bad, getuid());
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
