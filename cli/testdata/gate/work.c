/* work N calls price N times and ends; with "crash" it ends by a signal, with "fail" with a status,
   with "stay" it continues until it is ended, with "fork" its child does, with "nap" it sleeps in
   between most of the time; with "serve" it calls price once for each connection to the port N,
   with "answer" once for each byte that it answers there, and with "ask" it asks there, sleeping
   most of the time. EXTRA is the number of calls that a change adds. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef ROUNDS
#define ROUNDS 200
#endif

/* PAD moves the code behind it without changing it. */
#ifdef PAD
#define TEXT(x) #x
#define VALUE(x) TEXT(x)
__asm__(".text\n.skip " VALUE(PAD) ", 0x90\n");
#endif

static volatile unsigned sink;

__attribute__((noinline)) unsigned price(unsigned h)
{
	for (int i = 0; i < ROUNDS; i++)
		h = h * 31 + (h >> 9);
	return h;
}

__attribute__((constructor)) static void early(void) { sink += price(1); }

static struct sockaddr_in address(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listens(int port)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = address(port);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 99) < 0)
		exit(1);
	return listener;
}

static __attribute__((noinline)) void serve(int port)
{
	int listener = listens(port);
	for (int one; (one = accept(listener, NULL, NULL)) >= 0; close(one))
		sink += price(one);
}

/* nap lets a program sleep most of the time. It is to be called after each call of price. */
static void nap(void)
{
	static int calls;
	if (++calls % 64 == 0)
		usleep(1000);
}

/* ping asks for an answer, or answers, as long as the other side does. */
static void ping(int fd, int asks)
{
	char byte = 0;
	while ((!asks || write(fd, &byte, 1) == 1) && read(fd, &byte, 1) == 1) {
		if (asks) {
			nap();
			continue;
		}
		sink += price(byte);
		if (write(fd, &byte, 1) != 1)
			break;
	}
}

static __attribute__((noinline)) void answer(int port)
{
	int listener = listens(port);
	for (int one; (one = accept(listener, NULL, NULL)) >= 0; close(one))
		ping(one, 0);
}

static __attribute__((noinline)) void ask(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in at = address(port);
	if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		exit(1);
	ping(fd, 1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	if (strcmp(mode, "serve") == 0)
		serve(atoi(argv[1]));
	if (strcmp(mode, "answer") == 0)
		answer(atoi(argv[1]));
	if (strcmp(mode, "ask") == 0) {
		ask(atoi(argv[1]));
		return 0;
	}
	for (long i = 0; i < atol(argv[1]) + EXTRA - 1; i++)
		sink += price(i);
	if (strcmp(mode, "crash") == 0)
		abort();
	if (strcmp(mode, "fail") == 0) {
		fprintf(stderr, "no such order\n");
		return 3;
	}
	if (strcmp(mode, "fork") == 0 && fork() == 0)
		mode = "stay";
	if (strcmp(mode, "stay") == 0)
		for (;;)
			sink += price(sink);
	if (strcmp(mode, "nap") == 0)
		for (;;) {
			sink += price(sink);
			nap();
		}
	return 0;
}
