// heap reads lines "THREADS CHUNKS SIZE FREE": that many threads, one after the other, allocate
// CHUNKS chunks of up to SIZE bytes each and free every FREE-th of them (0: none). It answers
// each line, and begins, with what mallinfo2 says of all arenas: uordblks + hblkhd.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int chunks, size, every;

static void *work(void *unused) {
	char **list = malloc(chunks * sizeof *list);
	for (int i = 0; i < chunks; i++)
		list[i] = malloc(1 + (i * 7919L) % size);
	for (int i = 0; every && i < chunks; i += every)
		free(list[i]);
	return unused;
}

static void tell(void) {
	struct mallinfo2 all = mallinfo2();
	printf("%zu\n", all.uordblks + all.hblkhd);
	fflush(stdout);
}

int main(void) {
	int threads;
	setvbuf(stdin, malloc(1 << 12), _IOFBF, 1 << 12);
	setvbuf(stdout, malloc(1 << 12), _IOFBF, 1 << 12);
	tell();
	while (scanf("%d %d %d %d", &threads, &chunks, &size, &every) == 4) {
		pthread_t list[threads];
		if (threads == 0)
			work(0);
		for (int i = 0; i < threads; i++)
			pthread_create(&list[i], 0, work, 0);
		for (int i = 0; i < threads; i++)
			pthread_join(list[i], 0);
		tell();
	}
}
