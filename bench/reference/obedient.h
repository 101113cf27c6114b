/* A program that obeys the lines it reads. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* obey is defined by the program: it executes a line, and returns 0 if the command is unknown. */
static int obey(const char *line);

/* pin binds the thread to one processor, or unbinds it if cpu is -1. */
static void pin(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof set, &set);
}

int main(void) {
	char line[200];
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %d\n", getpid());
	while (fgets(line, sizeof line, stdin))
		if (!obey(line)) {
			fprintf(stderr, "%s: cannot obey %s", program_invocation_short_name, line);
			return 2;
		}
	return 0;
}
