/* A program with threads that wait until they are told to nap, or to take a lock that the main thread holds until they
   wait for it, and functions of the main thread during which one of them naps, or none. It answers with the number of times for which the kernel says that each thread gave up its
   processor, read within the function. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { workers = 3 };

static struct worker {
	sem_t go, done;
	long naps, locks, pages, faults;
	volatile long locking; /* how many locks it has begun to take */
	volatile int tid;
} all[workers];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void rest(void) {
	struct timespec t = {0, 200000};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
}

static long faulted(void) {
	struct rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

/* touch writes to fresh pages, says how many page faults that took, and writes a byte for each of them. */
static void touch(struct worker *w) {
	long before = faulted();
	char *p = mmap(0, w->pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, w->pages << 12, MADV_NOHUGEPAGE);
	for (long i = 0; i < w->pages; i++)
		p[i << 12] = 1;
	w->faults = faulted() - before;
	int null = open("/dev/null", O_WRONLY);
	if (write(null, p, w->pages) != w->pages)
		abort();
	close(null);
	munmap(p, w->pages << 12);
	w->pages = 0;
}

static void *wait_and_nap(void *p) {
	struct worker *w = p;
	w->tid = syscall(SYS_gettid);
	for (;;) {
		sem_post(&w->done);
		sem_wait(&w->go);
		for (long i = 0; i < w->naps; i++)
			rest();
		if (w->pages)
			touch(w);
		for (long i = 0; i < w->locks; i++) {
			w->locking++;
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
			sem_post(&w->done);
			sem_wait(&w->go);
		}
	}
}

/* waits returns how often a thread gave up its processor, when it waits for the next command. */
static long waits(struct worker *w) {
	for (long last = -1;; rest()) {
		char path[100], text[4000], state = 0;
		long n = -1;
		snprintf(path, sizeof path, "/proc/self/task/%d/status", w->tid);
		FILE *f = fopen(path, "r");
		while (f && fgets(text, sizeof text, f)) {
			sscanf(text, "State: %c", &state);
			sscanf(text, "voluntary_ctxt_switches: %ld", &n);
		}
		fclose(f);
		if (state == 'S' && n == last)
			return n;
		last = n;
	}
}

static void nap(struct worker *w, long naps) {
	w->naps = naps, w->locks = 0;
	sem_post(&w->go);
	sem_wait(&w->done);
	waits(w);
}

/* lock has a worker wait for the mutex a number of times: each time it is released when the thread waits. */
static void lock(struct worker *w, long locks) {
	w->naps = 0, w->locks = locks;
	for (long i = 0; i < locks; i++) {
		long before = w->locking;
		pthread_mutex_lock(&mutex);
		sem_post(&w->go);
		while (w->locking == before)
			rest();
		waits(w);
		pthread_mutex_unlock(&mutex);
		sem_wait(&w->done);
	}
	sem_post(&w->go);
	sem_wait(&w->done);
}

/* c1 has a worker nap, and says how often each worker waited since the beginning of the function. */
__attribute__((noinline, noclone)) int c1(int number, long naps) {
	long before[workers];
	for (int i = 0; i < workers; i++)
		before[i] = waits(&all[i]);
	if (naps)
		nap(&all[number], naps);
	printf("done");
	for (int i = 0; i < workers; i++)
		printf(" %ld", waits(&all[i]) - before[i]);
	printf("\n");
	return number; /* not by a jump to printf, which would end the function */
}

static void touches(struct worker *w, long pages) {
	w->naps = w->locks = w->faults = 0, w->pages = pages;
	sem_post(&w->go);
	sem_wait(&w->done);
}

/* c2 has a worker touch pages, and says how many page faults that took. */
__attribute__((noinline, noclone)) int c2(int number, long pages) {
	touches(&all[number], pages);
	printf("done %ld\n", all[number].faults);
	return number; /* as in c1 */
}

int main(void) {
	char line[200];
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int i = 0; i < workers; i++) {
		pthread_t t;
		pthread_create(&t, 0, wait_and_nap, &all[i]);
		sem_wait(&all[i].done);
	}
	printf("ready %p %d %d %d\n", (void *)main, all[0].tid, all[1].tid, all[2].tid);
	while (fgets(line, sizeof line, stdin)) {
		int number;
		long naps;
		if (sscanf(line, "c1 %d %ld", &number, &naps) == 2)
			c1(number, naps);
		else if (sscanf(line, "c2 %d %ld", &number, &naps) == 2)
			c2(number, naps);
		else if (sscanf(line, "touch %d %ld", &number, &naps) == 2)
			touches(&all[number], naps), printf("done\n");
		else if (sscanf(line, "nap %d %ld", &number, &naps) == 2)
			nap(&all[number], naps), printf("done\n");
		else if (sscanf(line, "lock %d %ld", &number, &naps) == 2)
			lock(&all[number], naps), printf("done\n");
		else
			return 1;
	}
	return 0;
}
