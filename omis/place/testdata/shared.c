/* For each line of standard input, with a number, calls every function of shared.s so often, and answers with how
   many results were wrong. */
#include <stdio.h>

extern struct {
	unsigned long (*call)(unsigned long);
	const char *name;
} functions[];

int main(void) {
	long times;
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready 0x1\n");
	while (scanf("%ld", &times) == 1) {
		long wrong = 0;
		for (int f = 0; functions[f].call; f++)
			for (unsigned long n = 1; n <= (unsigned long)times; n++)
				wrong += functions[f].call(n) != 3 * n + 1;
		printf("%ld wrong\n", wrong);
	}
}
