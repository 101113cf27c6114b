// ends HOW: a child that ends with status 7, if nothing kills it, after each of its threads
// has used some CPU time. It begins when a line comes in on standard input. Its parent prints
// the child's pid and at last the status and the microseconds of CPU time that wait4 returns.
//   group   the first thread ends all, while four others run
//   race    the same, while a hundred others end by themselves
//   single  the only thread returns from main
//   leader  the first thread ends first, then another one ends the process
//   turns   threads end one by one, the first thread last
//   exec    a thread executes this program as single, which ends the others
//   wait    it waits for a signal
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { memory = 32 << 20, threads = 4, many = 100 };
static char *how;
static pthread_barrier_t begun;

static void burn(long ms) {
	struct timespec t;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

static void *run(void *arg) {
	burn(!strcmp(how, "race") ? 10 : 50);
	pthread_barrier_wait(&begun);
	if (!strcmp(how, "race") || !strcmp(how, "turns"))
		return 0;
	for (;;)
		pause();
}

static void *finish(void *arg) {
	pthread_join(*(pthread_t *)arg, 0);
	burn(100);
	exit(7);
}

static void *execute(void *arg) {
	execl("/proc/self/exe", "ends", "single", "again", (char *)0);
	exit(1);
}

static int await(pid_t child) {
	struct rusage used;
	int status;
	printf("ready %p\n%d\n", (void *)burn, child);
	fflush(stdout);
	wait4(child, &status, 0, &used);
	printf("%d %ld\n", status, (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv) {
	pid_t child = argc < 3 ? fork() : 0;
	if (child)
		return await(child);
	how = argv[1];
	memset(mmap(0, memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), 1, memory);
	if (argc < 3)
		getchar();
	int n = !strcmp(how, "group") || !strcmp(how, "turns") || !strcmp(how, "exec") || !strcmp(how, "wait") ? threads : !strcmp(how, "race") ? many : 0;
	pthread_t t, self = pthread_self(), all[many];
	pthread_barrier_init(&begun, 0, n + 1);
	for (int i = 0; i < n; i++)
		pthread_create(&all[i], 0, run, 0);
	burn(50);
	if (!strcmp(how, "leader")) {
		pthread_create(&t, 0, finish, &self);
		pthread_exit(0);
	}
	pthread_barrier_wait(&begun);
	if (!strcmp(how, "turns"))
		for (int i = 0; i < n; i++)
			pthread_join(all[i], 0);
	if (!strcmp(how, "exec"))
		pthread_create(&t, 0, execute, 0);
	if (!strcmp(how, "exec") || !strcmp(how, "wait"))
		for (;;)
			pause();
	return 7;
}
