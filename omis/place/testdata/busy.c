/* For each line of standard input, with three numbers, calls work in so many threads, for so many milliseconds, and
   answers with how often. If the third one is not 0, a signal handler that takes as long, in milliseconds, interrupts
   the threads again and again meanwhile. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { most = 8 };

static volatile int stop;
static volatile long handling;

static void nap(long ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&t, &t))
		;
}

__attribute__((noinline, noclone, noipa)) int work(int n) { return n + 1; }

static void handler(int sig) { (void)sig, nap(handling); }

static void *calls(void *n) {
	while (!stop) {
		work(0);
		++*(long *)n;
	}
	return 0;
}

int main(void) {
	int threads;
	long ms;
	setvbuf(stdout, 0, _IOLBF, 0);
	signal(SIGUSR1, handler);
	printf("ready 0x1\n");
	while (scanf("%d %ld %ld", &threads, &ms, &handling) == 3 && threads <= most) {
		pthread_t all[most];
		struct {
			long n;
			char apart[120];
		} counts[most] = {0};
		stop = 0;
		for (int i = 0; i < threads; i++)
			pthread_create(&all[i], 0, calls, &counts[i].n);
		if (!handling)
			nap(ms);
		for (; handling && ms > 0; ms -= handling + 10) {
			nap(handling + 10);
			for (int i = 0; i < threads; i++)
				pthread_kill(all[i], SIGUSR1);
		}
		stop = 1;
		long sum = 0;
		for (int i = 0; i < threads; i++) {
			pthread_join(all[i], 0);
			sum += counts[i].n;
		}
		printf("%ld\n", sum);
	}
}
