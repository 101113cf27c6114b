// sockets makes system calls on sockets, pipes and files. It reads lines "call kind n" on
// standard input, makes n calls, and answers each line with the time that they took by its own
// clocks, in nanoseconds: CLOCK_MONOTONIC, and the CPU time of its thread, and with the sum of the
// results of calls that did not fail. The calls connect and end need no kind: connect makes a
// connection and accepts it; end shuts it down and closes it, and only that is timed.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char bytes[100];

static void check(int failed, const char *what) {
	if (failed) {
		perror(what);
		exit(1);
	}
}

static long now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long wall, cpu; // what timed calls took

static void begin(void) { wall -= now(CLOCK_MONOTONIC), cpu -= now(CLOCK_THREAD_CPUTIME_ID); }
static void end(void) { cpu += now(CLOCK_THREAD_CPUTIME_ID), wall += now(CLOCK_MONOTONIC); }

// tcp connects two TCP sockets.
static void tcp(int fds[2], int timed, int timedEnd) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	check(bind(l, (void *)&a, sizeof a) || listen(l, 1) || getsockname(l, (void *)&a, &size), "listen");
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (timed)
		begin();
	check(connect(fds[1], (void *)&a, sizeof a), "connect");
	fds[0] = accept(l, 0, 0);
	if (timed)
		end();
	check(fds[0] < 0, "accept");
	if (timedEnd)
		begin();
	close(l);
	if (timedEnd)
		end();
}

// connections makes n connections, and ends them.
static void connections(int n, int timed, int timedEnd) {
	for (int i = 0; i < n; i++) {
		int fds[2];
		tcp(fds, timed, timedEnd);
		if (timedEnd)
			begin();
		shutdown(fds[0], SHUT_RDWR), close(fds[0]), close(fds[1]);
		if (timedEnd)
			end();
	}
}

// limit bounds the time that calls wait, to 50 ms.
static void limit(int fd, int option) {
	struct timeval t = {.tv_usec = 50000};
	check(setsockopt(fd, SOL_SOCKET, option, &t, sizeof t), "setsockopt");
}

// fill sends until nothing more fits.
static void fill(int fd) {
	while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

// messages sends or receives two messages of half of the bytes, by one call.
static long messages(int fd, int (*transfer)(int, struct mmsghdr *, unsigned, int)) {
	struct iovec part = {bytes, sizeof bytes / 2};
	struct mmsghdr two[2] = {};
	two[0].msg_hdr.msg_iov = two[1].msg_hdr.msg_iov = &part;
	two[0].msg_hdr.msg_iovlen = two[1].msg_hdr.msg_iovlen = 1;
	return transfer(fd, two, 2, 0) == 2 ? two[0].msg_len + two[1].msg_len : -1;
}

static int receive(int fd, struct mmsghdr *all, unsigned n, int flags) { return recvmmsg(fd, all, n, flags, 0); }

static long make(const char *call, int in, int out) {
	if (!strcmp(call, "sendmmsg"))
		return messages(out, sendmmsg);
	if (!strcmp(call, "recvmmsg"))
		return messages(in, receive);
	if (!strcmp(call, "write"))
		return write(out, bytes, sizeof bytes);
	if (!strcmp(call, "send"))
		return send(out, bytes, sizeof bytes, 0);
	if (!strcmp(call, "read"))
		return read(in, bytes, sizeof bytes);
	return recv(in, bytes, sizeof bytes, 0);
}

int main(void) {
	int ends[4][2], full[2]; // the end to read and the end to write
	const char *kinds[] = {"tcp", "unix", "pipe", "file"};
	FILE *file = tmpfile(), *same;
	tcp(ends[0], 0, 0);
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[1]), "socketpair");
	check(pipe(ends[2]), "pipe");
	check(!file, "tmpfile");
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
	same = fopen(path, "r");
	check(!same, path);
	ends[3][0] = fileno(same), ends[3][1] = fileno(file);
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, full), "socketpair");
	fill(full[1]);
	limit(full[1], SO_SNDTIMEO), limit(full[1], SO_RCVTIMEO);
	printf("ready\n");
	fflush(stdout);
	char call[20], kind[20];
	int n;
	while (scanf("%19s %19s %d", call, kind, &n) == 3) {
		int in = full[1], out = full[1], waits = 1;
		for (int i = 0; i < 4; i++)
			if (!strcmp(kind, kinds[i]))
				in = ends[i][0], out = ends[i][1], waits = 0;
		long sum = 0;
		wall = cpu = 0;
		if (!strcmp(call, "connect") || !strcmp(call, "end")) {
			connections(n, !strcmp(call, "connect"), !strcmp(call, "end"));
		} else {
			begin();
			for (int i = 0; i < n; i++) {
				long done = make(call, in, out);
				check((done == sizeof bytes) == waits, call);
				sum += done > 0 ? done : 0;
			}
			end();
		}
		printf("%ld %ld %ld\n", wall, cpu, sum);
		fflush(stdout);
	}
}
