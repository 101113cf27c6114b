// witness executes commands from standard input, one a line, and answers each with a line that
// reports what it has done. Tests compare replies of the monitor with these reports. Besides the
// thread that reads commands, one thread spins with known values in its registers, and one waits
// for a pipe.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile unsigned char data[64] = "some bytes that are known before anybody has written";
volatile char zeros[5000];
static double vector[16];
static volatile long calls, called_by, elsewhere_by;
static volatile long signals, signalled, last;
static volatile pid_t spinner, waiter;
static uint64_t left[2];
static double left_vector;

__attribute__((noinline)) uint64_t work(uint64_t x) { return x * 3 + 1; }

__attribute__((noinline)) void called(void) {
	calls++;
	called_by = gettid();
}

// elsewhere is the function to which tests send a thread; it never returns.
__attribute__((noinline)) void elsewhere(void) {
	elsewhere_by = gettid();
	for (;;)
		pause();
}

static void handle(int sig) {
	signals++;
	last = sig;
	signalled = gettid();
}

static void *spin(void *arg) {
	spinner = gettid();
	for (int i = 0; i < 16; i++)
		vector[i] = i + 0.25;
	__asm__ volatile(
		"movsd 0(%[v]), %%xmm0; movsd 8(%[v]), %%xmm1\n"
		"mov $0x1111, %%rax; mov $0x4444, %%rbx; mov $-1, %%r15\n"
		"sub $512, %%rsp\n" // below it a call may use the stack
		"1: cmp $0x7777, %%r15; jne 1b\n"
		"add $512, %%rsp\n"
		"mov %%rax, %[rax]; mov %%rbx, %[rbx]; movsd %%xmm1, %[xmm]\n"
		: [rax] "=m"(left[0]), [rbx] "=m"(left[1]), [xmm] "=m"(left_vector)
		: [v] "r"(vector)
		: "rax", "rbx", "r15", "xmm0", "xmm1", "memory", "cc");
	spinner = 0;
	return 0;
}

static void *await(void *arg) {
	char c;
	int fds[2];
	if (pipe(fds))
		return 0;
	waiter = gettid();
	return (void *)(intptr_t)read(fds[0], &c, 1);
}

static void *be_born(void *arg) {
	*(pid_t *)arg = gettid();
	return 0;
}

static void threads(int n) {
	for (int i = 0; i < n; i++) {
		pid_t tid;
		pthread_t t;
		pthread_create(&t, 0, be_born, &tid);
		pthread_join(t, 0);
		printf("%d ", tid);
	}
}

static void processes(int n) {
	for (int i = 0; i < n; i++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, 0, 0);
		printf("%d ", pid);
	}
}

static void library(int n) {
	unsigned seed = 1;
	for (int i = 0; i < n; i++)
		printf("%d ", rand_r(&seed));
}

// nap sleeps n times and prints the total duration in seconds, by the clock.
static void nap(int n) {
	double slept = 0;
	for (int i = 0; i < n; i++) {
		struct timespec before, after;
		clock_gettime(CLOCK_MONOTONIC, &before);
		usleep(2000);
		clock_gettime(CLOCK_MONOTONIC, &after);
		slept += after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) / 1e9;
	}
	printf("%f", slept);
}

static void obey(const char *what, int n) {
	uint64_t sum = 0;
	pid_t parent = 0;
	if (!strcmp(what, "work")) {
		for (int i = 0; i < n; i++)
			sum += work(i);
		printf("%lu", sum);
	} else if (!strcmp(what, "threads")) {
		threads(n);
	} else if (!strcmp(what, "processes")) {
		processes(n);
	} else if (!strcmp(what, "library")) {
		library(n);
	} else if (!strcmp(what, "system")) {
		for (int i = 0; i < n; i++)
			parent = getppid();
		printf("%d", parent);
	} else if (!strcmp(what, "nap")) {
		nap(n);
	} else if (!strcmp(what, "raise")) {
		for (int i = 0; i < n; i++)
			raise(SIGUSR1);
		printf("%ld", signals);
	} else if (!strcmp(what, "signals")) {
		printf("%ld %ld %ld", signals, last, signalled);
	} else if (!strcmp(what, "calls")) {
		printf("%ld %ld %ld", calls, called_by, elsewhere_by);
	} else if (!strcmp(what, "registers")) {
		printf("%d %lx %lx %g", spinner, left[0], left[1], left_vector);
	} else if (!strcmp(what, "data")) {
		for (size_t i = 0; i < sizeof data; i++)
			printf("%02x", data[i]);
	}
}

int main(void) {
	struct sigaction sa = {.sa_handler = handle, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &sa, 0);
	sigaction(SIGUSR2, &sa, 0);
	pthread_t s, w;
	pthread_create(&s, 0, spin, 0);
	pthread_create(&w, 0, await, 0);
	pthread_setname_np(s, "spinner");
	while (!spinner || !waiter)
		usleep(1000);
	printf("ready %d %d %p %p %p %p\n", spinner, waiter, (void *)work, (void *)called, (void *)elsewhere, (void *)data);
	fflush(stdout);
	char what[32];
	int n;
	while (scanf("%31s %d", what, &n) == 2) {
		obey(what, n);
		putchar('\n');
		fflush(stdout);
	}
	return 0;
}
