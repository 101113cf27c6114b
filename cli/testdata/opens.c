/* A program that opens, calls and closes a library, as the lines of its standard input say. It answers each line with
   the number of calls so far, those of the library's constructor included. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int calls; /* the library adds to it */

int main(void) {
	char line[4096], *path = line + 2;
	int (*work)(int) = 0;
	void *library = 0, *before = 0;
	puts("0");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		switch (line[0]) {
		case 'o': /* open */
			library = dlopen(path, RTLD_NOW);
			if (!library || !(work = (int (*)(int))dlsym(library, "work"))) {
				puts(dlerror());
				return 1;
			}
			before = work;
			break;
		case 'c': /* call */
			for (int i = 0; i < 100; i++)
				work(i);
			break;
		case 'x': /* close */
			dlclose(library);
			break;
		case 'm': /* map something where the library was, so that it cannot be there again */
			if (mmap((void *)((unsigned long)before & -4096ul), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
				puts("mmap");
				return 1;
			}
			break;
		}
		printf("%d\n", calls);
		fflush(stdout);
	}
}
