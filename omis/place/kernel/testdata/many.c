/* A target that calls, at "all FROM TO", those of its many functions; from "spin N" to "halt" a thread of its own
   calls one of them all the time. */
#include <pthread.h>
#include <stdio.h>

extern void (*many_all[])(void);

static volatile int spins;

static void *spin(void *n) {
	while (spins)
		many_all[(long)n]();
	return 0;
}

int main(void) {
	int from, to;
	pthread_t spinner;
	char line[64];
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p\n", (void *)main);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "spin %d", &from) == 1) {
			spins = 1;
			pthread_create(&spinner, 0, spin, (void *)(long)from);
			printf("done\n");
			continue;
		}
		if (line[0] == 'h') {
			spins = 0;
			pthread_join(spinner, 0);
			printf("done\n");
			continue;
		}
		if (sscanf(line, "all %d %d", &from, &to) != 2)
			return 1;
		for (int i = from; i < to; i++)
			many_all[i]();
		printf("done %d\n", to - from);
	}
	return 0;
}
