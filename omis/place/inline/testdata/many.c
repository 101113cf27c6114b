/* A target that calls, at "all FROM TO", those of its many functions. */
#include <stdio.h>

extern void (*many_all[])(void);

int main(void) {
	int from, to;
	char line[64];
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p\n", (void *)main);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "all %d %d", &from, &to) != 2)
			return 1;
		for (int i = from; i < to; i++)
			many_all[i]();
		printf("done %d\n", to - from);
	}
	return 0;
}
