/* exchange sends messages from one thread to another through a socket. After each
 * message both wait at a barrier. Tests observe these calls of the C library.
 *
 *	usage: exchange [ROUNDS [PHASES]]     5 rounds in each of 1 phases
 *
 * SIGUSR2 starts each phase; each phase ends with a line:
 *	done PHASE calls SENDS bytes SUM      so far
 * After the last phase, SIGUSR2 ends the program.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SHORTEST = 10, LONGEST = 4096 };

static pthread_barrier_t meeting;
static int ends[2];

/* size of a message: each is one byte longer than the previous one. */
static size_t size(int round)
{
	return SHORTEST + (size_t)round % (LONGEST - SHORTEST);
}

/* arrived is called by the receiver for each message. */
__attribute__((noinline)) int arrived(int round)
{
	__asm__ volatile("");
	return round + 1;
}

static void *receive(void *rounds)
{
	static char text[LONGEST];
	for (int round = 0; round < *(int *)rounds;) {
		recv(ends[1], text, size(round), MSG_WAITALL);
		round = arrived(round);
		pthread_barrier_wait(&meeting);
	}
	return NULL;
}

static size_t transmit(int round)
{
	static char text[LONGEST];
	ssize_t sent = send(ends[0], text, size(round), 0);
	pthread_barrier_wait(&meeting);
	return sent > 0 ? (size_t)sent : 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	int phases = argc > 2 ? atoi(argv[2]) : 1;
	int all = rounds * phases, round = 0, sig;
	size_t sum = 0;
	pthread_t receiver;
	sigset_t begin;

	sigemptyset(&begin);
	sigaddset(&begin, SIGUSR2);
	sigprocmask(SIG_BLOCK, &begin, NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
		perror("exchange: cannot make a socket");
		return 1;
	}
	pthread_barrier_init(&meeting, NULL, 2);
	pthread_create(&receiver, NULL, receive, &all);
	printf("ready %d\n", getpid());
	fflush(stdout);

	for (int phase = 1; phase <= phases; phase++) {
		sigwait(&begin, &sig);
		for (int i = 0; i < rounds; i++)
			sum += transmit(round++);
		printf("done %d calls %d bytes %zu\n", phase, round, sum);
		fflush(stdout);
	}
	pthread_join(receiver, NULL);
	sigwait(&begin, &sig);
	return 0;
}
