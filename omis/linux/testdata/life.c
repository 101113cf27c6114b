// life churn|forks|exec|leader|tracer|stops ROUNDS: a target that is hard to keep hold of. It says how
// often it called work.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long calls;
static volatile uint64_t sink;
static const char *mode;
static int rounds, bad;

__attribute__((noinline)) uint64_t work(uint64_t x) {
	__asm__ volatile("");
	return x * 3 + 1;
}

static void *once(void *arg) {
	sink = work((uint64_t)arg);
	calls++;
	return 0;
}

static void churn(void) {
	pthread_t t[200];
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < 200; j++)
			if (pthread_create(&t[j], 0, once, 0))
				bad++;
		for (int j = 0; j < 200; j++)
			pthread_join(t[j], 0);
	}
}

static void *forker(void *arg) {
	for (int i = 0; i < rounds; i++) {
		int st;
		pid_t p = fork();
		if (p == 0) {
			if (work(5) != 16)
				_exit(2);
			_exit(fork() == 0 && work(1) != 4);
		}
		if (waitpid(p, &st, 0) != p || st)
			bad++;
		once(0);
	}
	return 0;
}

static void forks(void) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, forker, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
}

static void *execute(void *arg) {
	char left[16], *args[] = {"life", "exec", left, "again", 0};
	once(0);
	sprintf(left, "%d", rounds - 1);
	execv("/proc/self/exe", args);
	bad++;
	return 0;
}

static void *spin(void *arg) {
	for (;;)
		pause();
}

static void exec(void) {
	pthread_t t[3];
	if (rounds == 0)
		return;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, i == 2 ? execute : spin, 0);
	for (;;)
		pause();
}

static void finish(void) {
	printf("calls %ld bad %d\n", (long)calls, bad);
	fflush(stdout);
	while (getchar() != EOF)
		;
	exit(0);
}

static void *survive(void *arg) {
	usleep(20000);
	for (int i = 0; i < rounds; i++)
		once(0);
	finish();
	return 0;
}

static void leader(void) {
	pthread_t t;
	pthread_create(&t, 0, survive, 0);
	pthread_exit(0);
}

// tracer traces children of its own, both ways.
static void tracer(void) {
	for (int i = 0; i < rounds; i++) {
		int st, gate[2];
		if (pipe(gate))
			bad++;
		pid_t p = fork();
		if (p == 0) {
			close(gate[1]);
			if (i % 2 && ptrace(PTRACE_TRACEME, 0, 0, 0))
				_exit(3);
			if (i % 2)
				raise(SIGSTOP);
			else if (read(gate[0], &st, 1)) // until it is traced
				_exit(4);
			_exit(work(1) != 4);
		}
		if (i % 2 == 0 && (ptrace(PTRACE_SEIZE, p, 0, 0) || ptrace(PTRACE_INTERRUPT, p, 0, 0)))
			bad++;
		if (waitpid(p, &st, 0) != p || !WIFSTOPPED(st) || ptrace(PTRACE_CONT, p, 0, 0))
			bad++;
		close(gate[0]);
		close(gate[1]);
		if (waitpid(p, &st, 0) != p || st)
			bad++;
		once(0);
	}
}

// stops stops itself; its child continues it.
static void stops(void) {
	pid_t self = getpid(), p = fork();
	if (p == 0) {
		for (;;) {
			usleep(300);
			if (kill(self, SIGCONT))
				_exit(0);
		}
	}
	for (int i = 0; i < rounds; i++) {
		once(0);
		raise(SIGSTOP);
		once(0);
	}
	kill(p, SIGKILL);
	waitpid(p, 0, 0);
}

int main(int argc, char **argv) {
	mode = argv[1];
	rounds = atoi(argv[2]);
	if (argc == 3) {
		printf("ready %p\n", (void *)work);
		fflush(stdout);
		getchar();
	}
	struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"churn", churn}, {"forks", forks}, {"exec", exec}, {"leader", leader}, {"tracer", tracer}, {"stops", stops}};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(mode, modes[i].name))
			modes[i].run();
	finish();
}
