// A program whose constructors work before main does. In the end it reports the calls of its
// own function, and of the library's if there is one, and waits for the end of its input.
#include <stdio.h>

extern long library_calls __attribute__((weak));
void library_work(void) __attribute__((weak));

static long calls;

__attribute__((noipa)) void work(void) { calls++; }

__attribute__((constructor)) static void begin(void) {
	for (int i = 0; i < 77; i++)
		work();
}

int main(void) {
	for (int i = 0; i < 10; i++) {
		work();
		if (library_work)
			library_work();
	}
	printf("%ld %ld\n", calls, library_work ? library_calls : 0);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
