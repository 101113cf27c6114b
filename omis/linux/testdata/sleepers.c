// sleepers: threads wait in all the ways that a stop interrupts, and tell whether the system call
// noticed anything.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static const long duration = 400; // ms
static const long late = 1000; // on a busy machine a thread gets its processor late
// The kernel gives select what was left as it was interrupted, so the time a thread is stopped is
// added to it. One that began anew after each interruption would never end.
static const long select_late = 5000;
static int bad;

__attribute__((noinline)) uint64_t work(uint64_t x) { return x * 3 + 1; }

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct timespec later(clockid_t c) {
	struct timespec t;
	clock_gettime(c, &t);
	t.tv_nsec += duration * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static int wait_nanosleep(void) {
	struct timespec t = {0, duration * 1000000};
	return nanosleep(&t, 0);
}

static int wait_absolute(void) {
	struct timespec t = later(CLOCK_MONOTONIC);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}

static int wait_futex(void) {
	sem_t s;
	sem_init(&s, 0, 0);
	struct timespec t = later(CLOCK_REALTIME);
	return sem_timedwait(&s, &t) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

static int wait_poll(void) { return poll(0, 0, duration); }

static int wait_select(void) {
	struct timeval t = {0, duration * 1000};
	return select(0, 0, 0, 0, &t);
}

static int wait_epoll(void) {
	struct epoll_event e;
	int fd = epoll_create1(0), r = epoll_wait(fd, &e, 1, duration);
	close(fd);
	return r;
}

static int pipes[2];
static long reading; // since when

static int wait_read(void) {
	char c;
	__atomic_store_n(&reading, now(), __ATOMIC_SEQ_CST);
	return read(pipes[0], &c, 1) == 1 ? 0 : -1;
}

static struct {
	const char *name;
	int (*wait)(void);
} ways[] = {{"nanosleep", wait_nanosleep}, {"absolute", wait_absolute}, {"futex", wait_futex}, {"poll", wait_poll},
	{"select", wait_select}, {"epoll", wait_epoll}, {"read", wait_read}};

#define WAYS (sizeof ways / sizeof *ways)

static void *run(void *arg) {
	long i = (long)arg, begin = now();
	int r = ways[i].wait();
	long took = now() - begin;
	// epoll_wait is documented to end with EINTR when its process is stopped and
	// continued; the kernel does not restart it.
	if ((r != 0 && !(ways[i].wait == wait_epoll && errno == EINTR)) || (r == 0 && took < duration - 2) ||
	    took > duration + (ways[i].wait == wait_select ? select_late : late)) {
		printf("%s: %d, %s, after %ld ms\n", ways[i].name, r, strerror(errno), took);
		__atomic_add_fetch(&bad, 1, __ATOMIC_SEQ_CST);
	}
	work(i);
	return 0;
}

int main(void) {
	pthread_t t[WAYS];
	if (pipe(pipes))
		return 1;
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	for (long i = 0; i < (long)WAYS; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	long since; // the reader may get its processor later than this thread
	while (!(since = __atomic_load_n(&reading, __ATOMIC_SEQ_CST)))
		usleep(1000);
	while (now() < since + duration)
		usleep(1000);
	if (write(pipes[1], "x", 1) != 1)
		return 1;
	for (int i = 0; i < (int)WAYS; i++)
		pthread_join(t[i], 0);
	printf("bad %d\n", bad);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
