/* Threads that make the program's calls, each a number of them. */
#include <pthread.h>

static void *calls(void *n); /* the program has it */

/* together: so many threads at the same time. */
static void together(int threads, long each) {
	pthread_t t[1000];
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, calls, (void *)each);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
}

/* oneByOne: so many threads, each of which ends before the next begins. */
static void oneByOne(int threads, long each) {
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, 0, calls, (void *)each);
		pthread_join(t, 0);
	}
}
