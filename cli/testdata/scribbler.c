/*
 * This program tries to harm its monitor: it overwrites the memory that it shares with the
 * monitor, and forges memory of an earlier monitor.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul

__attribute__((noinline)) void work(void) { __asm__ volatile("" ::: "memory"); }

/* shared returns the memory that is shared with a monitor: the largest mapping of that name. */
static uint64_t *shared(size_t *size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint64_t *at = NULL;
	*size = 0;
	while (fgets(line, sizeof line, maps)) {
		unsigned long begin, end;
		if (strstr(line, "memfd:mirador patches") && sscanf(line, "%lx-%lx", &begin, &end) == 2 &&
		    end - begin > *size) {
			at = (uint64_t *)begin;
			*size = end - begin;
		}
	}
	fclose(maps);
	return at;
}

/* scribble writes a number into the header, the claims, the directory and the ledger. */
static void scribble(uint64_t number)
{
	size_t size;
	uint64_t *at = shared(&size);
	if (!at)
		return;
	for (size_t i = 2; i < 10; i++)
		at[i] = number;
	memset((char *)at + 1024, (int)number, 3000);
	for (size_t i = 0; i < 64; i++)
		at[0x400000 / 8 + i] = number;
	for (size_t i = 0; i < 512; i++)
		at[PAGE / 8 + i] ^= number;
	for (size_t i = 0; i < 512; i++)
		at[0x500000 / 8 + i] ^= number;
}

/* forge maps memory like that of an earlier monitor, with invalid numbers. */
static void forge(void)
{
	static const char *magics[] = {"mirador patch 1", "mirador hold 2", "mirador arena 4"};
	static const size_t offsets[] = {0, 0x800, 0x600};
	for (int i = 0; i < 3; i++) {
		char *at = mmap(NULL, 80 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *code = at + 16 * PAGE;
		memset(code, 0x7f, 32 * PAGE);
		for (int page = 0; page < 32; page++) {
			memset(code + page * PAGE + offsets[i], 0, 16);
			strcpy(code + page * PAGE + offsets[i], magics[i]);
		}
		mprotect(code, 64 * PAGE, PROT_READ | PROT_EXEC);
		if (i == 1)
			mprotect(at, 16 * PAGE, PROT_READ);
	}
	int fd = memfd_create("mirador patches", 0);
	if (ftruncate(fd, 1l << 22))
		abort();
	char *at = mmap(NULL, 1l << 22, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(at, "mirador inline 9");
	if (ftruncate(fd, 0))
		abort();
}

int main(void)
{
	char line[64];
	unsigned long calls = 0;
	setlinebuf(stdout);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		if (!strncmp(line, "scribble", 8))
			scribble(strtoull(line + 8, NULL, 0));
		else if (!strncmp(line, "forge", 5))
			forge();
		for (int i = 0; i < 100; i++, calls++)
			work();
		printf("%lu\n", calls);
	}
	return 0;
}
