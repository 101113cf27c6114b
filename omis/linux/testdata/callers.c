// callers: after a line on standard input makes system calls of many kinds from two threads, one of
// which waits in a call that signals interrupt.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) uint64_t work(uint64_t x) { return x * 3 + 1; }

static volatile uint64_t sink;

static void nothing(int sig) {}

static void *nap(void *arg) {
	struct timespec t = {0, 50000000};
	while (nanosleep(&t, &t))
		;
	return 0;
}

int main(void) {
	struct sigaction sa = {.sa_handler = nothing};
	sigaction(SIGUSR1, &sa, 0);
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	char c, buf[64];
	if (read(0, &c, 1) != 1)
		return 1;
	pthread_t t;
	pthread_create(&t, 0, nap, 0);
	for (int i = 0; i < 200; i++) {
		syscall(SYS_getppid);
		int fd = open("/dev/zero", O_RDONLY);
		if (read(fd, buf, sizeof buf) != sizeof buf)
			return 1;
		close(fd);
		open("/nowhere/at all", O_RDONLY);
		sink = work(i);
		if (i % 50 == 0)
			pthread_kill(t, SIGUSR1);
	}
	pthread_join(t, 0);
	pid_t p = fork();
	if (p == 0)
		_exit(0);
	waitpid(p, 0, 0);
	if (write(1, "done\n", 5) != 5)
		return 1;
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
