/* For each line of standard input, calls every function of branches.s with all pairs of some values, and answers with
   how often the jump of each was taken. */
#include <limits.h>
#include <stdio.h>

extern long (*branches[])(long, long);

int main(void) {
	static const long values[] = {LONG_MIN, LONG_MIN + 1, -3, -1, 0, 1, 2, 5, 300, LONG_MAX};
	enum { many = sizeof values / sizeof *values };
	char line[100];
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready 0x1\n");
	while (fgets(line, sizeof line, stdin)) {
		for (int f = 0; branches[f]; f++) {
			int taken = 0;
			for (int i = 0; i < many; i++)
				for (int k = 0; k < many; k++)
					taken += branches[f](values[i], values[k]);
			printf("%d ", taken);
		}
		printf("\n");
	}
}
