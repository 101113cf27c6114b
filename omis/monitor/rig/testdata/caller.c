/* A program that makes a known number of system calls. It does what the lines of its standard input say, and
   answers each with a line. What it needs for that itself are read and write. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "crowd.h"

static int ends[2];
static volatile int left;
static sigjmp_buf back;

static void *calls(void *n) {
	for (long i = 0; i < (long)n; i++)
		syscall(SYS_getppid);
	return 0;
}

__attribute__((noinline, noclone, aligned(16))) int child(long n) {
	pid_t pid = fork();
	if (pid == 0) {
		calls((void *)n);
		_exit(7);
	}
	int status;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void feed(void) {
	if (write(ends[1], "x", 1) != 1)
		abort();
}

static long drink(void) {
	char byte;
	struct iovec v = {&byte, 1};
	return readv(ends[0], &v, 1);
}

/* drinks tells that the first thread waits in drink. */
static int drinks(void) {
	long call = -1;
	FILE *f = fopen("/proc/self/syscall", "r");
	if (!f || fscanf(f, "%ld", &call) != 1)
		call = -1; /* it runs */
	if (f)
		fclose(f);
	return call == SYS_readv;
}

/* late feeds the pipe some milliseconds after somebody waits for it. */
static void *late(void *ms) {
	while (!drinks())
		sched_yield();
	struct timespec t = {(long)ms / 1000, (long)ms % 1000 * 1000000L};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
	feed();
	return 0;
}

static void quiet(int sig) { (void)sig; }

/* counting lets the call it interrupts come to its end when it has come often enough. It makes a call itself, but
   not when it comes once more before that call ends. */
static void counting(int sig) {
	(void)sig;
	if (left == 0)
		return;
	syscall(SYS_getppid);
	if (--left == 0)
		feed();
}

/* leaving leaves the call of readv that it interrupted; if there is none, it waits for the next time. A call that
   was begun has left in RCX where it was to return to. */
static void leaving(int sig, siginfo_t *info, void *context) {
	(void)sig, (void)info;
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	if (r[REG_RAX] == SYS_readv && r[REG_RCX] == r[REG_RIP] + 2 && !memcmp((void *)r[REG_RIP], "\x0f\x05", 2))
		siglongjmp(back, 1);
}

/* alarms has SIGALRM come every 2 ms. */
static void alarms(void *handler, int flags, int on) {
	static timer_t timer;
	static int made;
	struct sigaction a = {.sa_flags = flags};
	a.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
	sigaction(SIGALRM, &a, 0);
	if (!made++)
		timer_create(CLOCK_MONOTONIC, 0, &timer);
	struct itimerspec every = {{0, on * 2000000}, {0, on * 2000000}};
	timer_settime(timer, 0, &every, 0);
}

/* interrupted: one call of readv that is made again after each of so many handlers. */
static long interrupted(int handlers) {
	left = handlers;
	alarms(counting, SA_RESTART, 1);
	long r = drink();
	alarms(SIG_IGN, 0, 0);
	return r;
}

/* failing: so many calls of readv that fail since a handler runs. */
static int failing(int times) {
	int failed = 0;
	alarms(quiet, 0, 1);
	while (failed < times)
		failed += drink() < 0;
	alarms(SIG_IGN, 0, 0);
	return failed;
}

/* jumping: so many calls of readv that a handler jumps out of. */
static int jumping(int times) {
	for (volatile int i = 0; i < times; i++)
		if (!sigsetjmp(back, 1)) {
			alarms(leaving, SA_RESTART | SA_SIGINFO, 1);
			drink();
		} else
			alarms(SIG_IGN, 0, 0);
	return times;
}

/* another makes calls as 32-bit programs do: 20 is getpid there, writev here. */
static void another(long n) {
	for (long r = 20; n > 0; n--, r = 20)
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
}

static int nap(long ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
}

/* Reads the program's file past all caches, and returns how often that was refused. */
static long disk(long n) {
	enum { size = 4096 };
	static char room[size] __attribute__((aligned(size)));
	int fd = open("/proc/self/exe", O_RDONLY | O_DIRECT);
	long refused = 0;
	while (n-- > 0)
		refused += pread(fd, room, size, 0) != size;
	close(fd);
	return refused;
}

/* amounts sends and receives messages of 1 to n bytes, and asks for one more that is not there after each. */
static long amounts(long n) {
	static char room[1 << 16];
	int pair[2];
	long sum = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		abort();
	for (long i = 1; i <= n; i++) {
		sendto(pair[0], room, i, 0, 0, 0);
		sum += recvfrom(pair[1], room, sizeof room, 0, 0, 0);
		recvfrom(pair[1], room, sizeof room, MSG_DONTWAIT, 0, 0);
	}
	close(pair[0]);
	close(pair[1]);
	return sum;
}

/* messages sends and receives n times three messages of 1 to n bytes in one call, and asks once more when there is none. */
static long messages(long n) {
	static char room[3][1 << 10];
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		abort();
	for (long i = 1; i <= n; i++) {
		struct iovec part[3];
		struct mmsghdr all[3] = {};
		for (int k = 0; k < 3; k++) {
			part[k] = (struct iovec){room[k], i};
			all[k].msg_hdr.msg_iov = &part[k], all[k].msg_hdr.msg_iovlen = 1;
		}
		if (sendmmsg(pair[0], all, 3, 0) != 3)
			abort();
		part[0].iov_len = part[1].iov_len = sizeof room[0]; /* the third is cut off to one byte */
		part[2].iov_len = 1;
		for (int k = 0; k < 3; k++)
			all[k].msg_len = 12345;
		if (recvmmsg(pair[1], all, 3, 0, 0) != 3 || recvmmsg(pair[1], all, 3, MSG_DONTWAIT, 0) != -1)
			abort();
	}
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void *amountsOf(void *n) {
	amounts((long)n);
	return 0;
}

/* extremes makes calls whose arguments and results are at the ends of what numbers can be. */
static void extremes(void) {
	int fd = memfd_create("extremes", 0);
	for (int i = 0; i < 3; i++)
		syscall(SYS_lseek, fd, 0x7fffffffffffffffL, SEEK_SET);
	syscall(SYS_lseek, fd, -5L, SEEK_SET);
	close(fd);
	syscall(SYS_getsid, 0x700000000L - 3); /* the kernel and the table take 32 bits of it */
	syscall(SYS_getsid, 0x700000000L);
	syscall(SYS_munmap, 1L, 0x8000000000000000UL);
	syscall(SYS_munmap, 1L, 0x7fffffffffffffffUL);
}

/* onSockets writes and reads eight bytes so many times on a socket, and twice as often in a file. */
static long onSockets(long n) {
	char text[8] = "message";
	int pair[2], file = memfd_create("sockets", 0);
	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	for (long i = 0; i < n; i++) {
		if (write(pair[0], text, sizeof text) != sizeof text || read(pair[1], text, sizeof text) != sizeof text)
			return -2;
		for (int j = 0; j < 2; j++)
			if (pwrite(file, text, sizeof text, 0) != sizeof text || lseek(file, 0, SEEK_SET) != 0 ||
			    write(file, text, sizeof text) != sizeof text || lseek(file, 0, SEEK_SET) != 0 ||
			    read(file, text, sizeof text) != sizeof text)
				return -3;
	}
	if (write(-1, text, 1) != -1 || write(1 << 30, text, 1) != -1)
		return -4;
	close(pair[0]);
	close(pair[1]);
	close(file);
	return 0;
}

int main(int argc, char **argv) {
	char line[200], what[20];
	setvbuf(stdout, 0, _IOLBF, 0);
	if (pipe(ends))
		return 9;
	printf("ready 0x1\n");
	while (fgets(line, sizeof line, stdin)) {
		long a = 0, b = 0, r = 0;
		pthread_t t;
		sscanf(line, "%19s %ld %ld", what, &a, &b);
		if (!strcmp(what, "call"))
			calls((void *)a);
		else if (!strcmp(what, "together"))
			together(a, b);
		else if (!strcmp(what, "onebyone"))
			oneByOne(a, b);
		else if (!strcmp(what, "fork"))
			r = child(a);
		else if (!strcmp(what, "interrupted"))
			r = interrupted(a);
		else if (!strcmp(what, "failing"))
			r = failing(a);
		else if (!strcmp(what, "jumping"))
			r = jumping(a);
		else if (!strcmp(what, "another"))
			another(a);
		else if (!strcmp(what, "nap"))
			r = nap(a);
		else if (!strcmp(what, "sockets"))
			r = onSockets(a);
		else if (!strcmp(what, "amounts"))
			r = amounts(a);
		else if (!strcmp(what, "messages"))
			r = messages(a);
		else if (!strcmp(what, "crowd")) {
			pthread_t all[16];
			for (long i = 0; i < a && i < 16; i++)
				pthread_create(&all[i], 0, amountsOf, (void *)(b + i));
			for (long i = 0; i < a && i < 16; i++)
				pthread_join(all[i], 0);
		} else if (!strcmp(what, "extremes"))
			extremes();
		else if (!strcmp(what, "disk"))
			r = disk(a);
		else if (!strcmp(what, "late")) {
			pthread_create(&t, 0, late, (void *)a);
			r = drink();
			pthread_join(t, 0);
		} else if (!strcmp(what, "forever"))
			pthread_create(&t, 0, calls, (void *)(1L << 60));
		else if (!strcmp(what, "exec")) {
			execv("/proc/self/exe", argv);
			return 9;
		}
		printf("done %ld\n", r + 0 * argc);
	}
	return 0;
}
