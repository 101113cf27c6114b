/* mmul multiplies matrices in several named threads, and counts its own calls,
 * so that tests can compare a monitor's measurements with the true values.
 *
 * The main thread only waits for signals:
 *	SIGUSR1          report
 *	SIGUSR2          begin (with --wait); end (with --stay)
 *	SIGTERM, SIGINT  stop after the current round, report, end
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"
#include "work.h"

enum { MOST_THREADS = 1024, MOST_SIZE = 2048 };

struct options {
	int threads, size;
	long rounds, pace;
	int wait, stay;
	const char *counts;
};

static const char usage[] =
	"usage: mmul [OPTION]... [THREADS [SIZE [ROUNDS]]]\n"
	"Multiplies SIZE x SIZE matrices in THREADS threads (4 threads, size 64), ROUNDS\n"
	"times each (0: forever), and counts its own calls.\n"
	"  --wait         start at SIGUSR2\n"
	"  --stay         keep the threads after the work until SIGUSR2\n"
	"  --pace USEC    sleep after each round\n"
	"  --counts FILE  write each report to FILE too\n"
	"SIGUSR1 makes it report; SIGTERM ends it after the current round.\n";

static pthread_barrier_t made;           /* all threads exist */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int begun, ended, working;        /* under lock */

static void wait_for(int *flag)
{
	while (!*flag)
		pthread_cond_wait(&changed, &lock);
}

static void set(int *flag)
{
	pthread_mutex_lock(&lock);
	*flag = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	w->tid = (pid_t)syscall(SYS_gettid);
	w->counts = &counts;
	pthread_setname_np(pthread_self(), w->name);
	pthread_barrier_wait(&made);

	pthread_mutex_lock(&lock);
	wait_for(&begun);
	pthread_mutex_unlock(&lock);
	work(w);

	pthread_mutex_lock(&lock);
	if (--working == 0)
		kill(getpid(), SIGRTMIN); /* the main thread waits for signals */
	wait_for(&ended); /* the counters live as long as the thread */
	pthread_mutex_unlock(&lock);
	return NULL;
}

static long number(const char *text, long least, long most)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || *end || end == text || n < least || n > most) {
		fprintf(stderr, "mmul: %s is not a number from %ld to %ld\n%s", text, least, most, usage);
		exit(2);
	}
	return n;
}

static struct options parse(int argc, char **argv)
{
	enum { WAIT = 1, STAY, PACE, COUNTS, HELP };
	static const struct option known[] = {
		{"wait", no_argument, NULL, WAIT},    {"stay", no_argument, NULL, STAY},
		{"pace", required_argument, NULL, PACE}, {"counts", required_argument, NULL, COUNTS},
		{"help", no_argument, NULL, HELP},    {NULL, 0, NULL, 0},
	};
	struct options o = {.threads = 4, .size = 64};
	int c;
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case WAIT: o.wait = 1; break;
		case STAY: o.stay = 1; break;
		case PACE: o.pace = number(optarg, 0, 3600000000L); break;
		case COUNTS: o.counts = optarg; break;
		case HELP: fputs(usage, stdout); exit(0);
		default: fputs(usage, stderr); exit(2);
		}
	}
	argv += optind;
	argc -= optind;
	if (argc > 0)
		o.threads = (int)number(argv[0], 1, MOST_THREADS);
	if (argc > 1)
		o.size = (int)number(argv[1], 1, MOST_SIZE);
	if (argc > 2)
		o.rounds = number(argv[2], 0, 1L << 40);
	if (argc > 3) {
		fputs(usage, stderr);
		exit(2);
	}
	return o;
}

/* block blocks the signals, so that the main thread can wait for them; threads
 * that are created later inherit the mask. */
static sigset_t block(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigaddset(&s, SIGUSR2);
	sigaddset(&s, SIGTERM);
	sigaddset(&s, SIGINT);
	sigaddset(&s, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &s, NULL);
	signal(SIGPIPE, SIG_IGN);
	return s;
}

/* attend handles signals until the work is done and a signal asked to end. */
static void attend(const struct options *o, const sigset_t *signals, struct job *job, struct worker *workers)
{
	const char *state = o->wait ? "waiting" : "working";
	for (;;) {
		int sig;
		if (sigwait(signals, &sig))
			continue;
		if (sig == SIGUSR1) {
			report(o->counts, state, workers, o->threads);
		} else if (sig == SIGUSR2 && !strcmp(state, "waiting")) {
			state = "working";
			set(&begun);
		} else if (sig == SIGUSR2 && !strcmp(state, "done")) {
			return;
		} else if (sig == SIGTERM || sig == SIGINT) {
			if (!strcmp(state, "done"))
				return;
			state = "stopping";
			job->stop = 1;
			set(&begun);
		} else if (sig == SIGRTMIN) {
			int stopped = !strcmp(state, "stopping");
			state = "done";
			report(o->counts, state, workers, o->threads);
			if (stopped || !o->stay)
				return;
		}
	}
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct job job = {.size = o.size, .rounds = o.rounds, .pace = o.pace};
	struct worker *workers = calloc((size_t)o.threads, sizeof *workers);
	pthread_t *threads = calloc((size_t)o.threads, sizeof *threads);
	if (!workers || !threads)
		abort();
	sigset_t signals = block();

	working = o.threads;
	begun = !o.wait;
	pthread_barrier_init(&made, NULL, (unsigned)o.threads + 1);
	for (int i = 0; i < o.threads; i++) {
		workers[i].job = &job;
		workers[i].number = i;
		snprintf(workers[i].name, sizeof workers[i].name, "multiplier-%d", i);
		if (pthread_create(&threads[i], NULL, run, &workers[i])) {
			perror("mmul: cannot create a thread");
			return 1;
		}
	}
	pthread_barrier_wait(&made);
	printf("ready %d\n", getpid());
	fflush(stdout);

	attend(&o, &signals, &job, workers);

	set(&ended);
	long wrong = 0;
	for (int i = 0; i < o.threads; i++) {
		pthread_join(threads[i], NULL);
		wrong += workers[i].wrong;
	}
	free(threads);
	free(workers);
	return wrong ? 1 : 0;
}
