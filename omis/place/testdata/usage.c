/* A program whose functions use known CPU time: it asks for that itself, just inside of them and just outside, so
   that what is measured at their ends lies between the two. It does what the lines of its standard input say, and
   answers each with a line of both sums, in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long used(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void rest(long us) {
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
}

/* A function that spins and rests, each for some microseconds. */
__attribute__((noinline, noclone)) long long work(long busy, long idle) {
	long long begin = used();
	if (idle)
		rest(idle);
	while (used() - begin < busy * 1000LL)
		;
	return used() - begin;
}

struct job {
	int number; /* of its thread */
	long times, busy, idle;
	long long inside, outside;
};

/* hop has the thread go on on each processor that it may use, one after the other. */
static void hop(int turn) {
	cpu_set_t all, one;
	sched_getaffinity(getpid(), sizeof all, &all);
	int n = turn % CPU_COUNT(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof one, &one);
		}
}

static void *measured(void *p) {
	struct job *j = p;
	for (long i = 0; i < j->times; i++) {
		long long begin = used();
		j->inside += work(j->busy, j->idle);
		j->outside += used() - begin;
	}
	return 0;
}

/* A function that goes to another processor in the middle. */
__attribute__((noinline, noclone)) long long wander(long hops, long busy) {
	long long begin = used();
	for (long i = 0; i < hops; i++) {
		hop(i);
		long long since = used();
		while (used() - since < busy * 1000LL)
			;
	}
	return used() - begin;
}

static void *wandering(void *p) {
	struct job *j = p;
	long long begin = used();
	j->inside = wander(j->times, j->busy);
	j->outside = used() - begin;
	return 0;
}

/* A function that takes as much CPU time each time, about a tenth of a millisecond, and asks for none: to be asked,
   the kernel brings up to date what it knows. */
__attribute__((noinline, noclone)) void even(void) {
	for (volatile int i = 0; i < 100000; i++)
		;
}

static void *evenly(void *p) {
	struct job *j = p;
	for (long i = 0; i < j->times; i++)
		even();
	return 0;
}

/* Two threads each wait for the other after each turn, so that their processors change each other's run queues all
   the time. */
static struct { sem_t turn[2]; } pairs[32];

static void *in_turn(void *p) {
	struct job *j = p;
	sem_t *turn = pairs[j->number / 2].turn, *own = &turn[j->number % 2], *other = &turn[1 - j->number % 2];
	for (long i = 0; i < j->times; i++) {
		work(0, 0);
		sem_post(other);
		sem_wait(own);
	}
	return 0;
}

static void run(int threads, void *(*f)(void *), struct job j) {
	pthread_t t[64];
	struct job each[64];
	for (int i = 0; i < threads; i++) {
		each[i] = j;
		each[i].number = i;
		pthread_create(&t[i], 0, f, &each[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], 0);
		j.inside += each[i].inside, j.outside += each[i].outside;
	}
	printf("done %lld %lld\n", j.inside, j.outside);
}

int main(void) {
	char line[200];
	setvbuf(stdout, 0, _IOLBF, 0);
	printf("ready %p\n", (void *)main);
	while (fgets(line, sizeof line, stdin)) {
		int threads;
		struct job j = {0};
		if (sscanf(line, "work %d %ld %ld %ld", &threads, &j.times, &j.busy, &j.idle) == 4)
			run(threads, measured, j);
		else if (sscanf(line, "wander %d %ld %ld", &threads, &j.times, &j.busy) == 3)
			run(threads, wandering, j);
		else if (sscanf(line, "in turn %d %ld", &threads, &j.times) == 2)
			run(threads, in_turn, j);
		else if (sscanf(line, "even %ld", &j.times) == 1)
			run(1, evenly, j);
		else
			return 1;
	}
	return 0;
}
