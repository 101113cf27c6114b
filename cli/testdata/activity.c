// activity reads lines "WHAT N" on standard input, does something N times, and answers each line
// with what it knows of it: bytes, or nanoseconds by its own clock.
//
//	files N    writes and reads 1000 bytes of a file; answers the bytes and the time of both
//	heap N     allocates 1000 bytes, and frees every other; answers what mallinfo2 says
//	network N  makes a pair of sockets
//	memory N   maps and unmaps a page
//	usage 1    answers minor faults, voluntary switches, user and system time (getrusage, ms)
//	events N   touches new pages and changes the processor, also in a new thread
//	locks 1    the same, but holds the mutex until a byte comes
//	locks N    has a thread wait for a mutex while another holds it, and for a condition and a semaphore;
//	           answers how often the mutex was taken when the thread came, and for how long it waited
//	allocs N   allocates memory in several ways; answers how many bytes it asked for, and the calls
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char bytes[1000];

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void files(int n) {
	int fd = memfd_create("file", 0), ends[2];
	long written = 0, got = 0, begin = now();
	for (int i = 0; i < n; i++) {
		written += write(fd, bytes, sizeof bytes);
		got += pread(fd, bytes, sizeof bytes, 1000L * i);
	}
	printf("%ld %ld %ld\n", written, got, now() - begin);
	// These calls are on no file.
	if (pipe(ends) || write(ends[1], bytes, 10) != 10 || read(ends[0], bytes, 10) != 10)
		exit(1);
	close(ends[0]), close(ends[1]), close(fd);
}

static void heap(int n) {
	for (int i = 0; i < n; i++) {
		char *volatile keep = malloc(1000), *volatile drop = malloc(1000);
		keep[0] = drop[0] = 1;
		free(drop);
	}
	struct mallinfo2 m = mallinfo2();
	printf("%zu\n", m.uordblks + m.hblkhd);
}

static void network(int n) {
	for (int i = 0; i < n; i++) {
		int ends[2];
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			exit(1);
		close(ends[0]), close(ends[1]);
	}
	puts("0");
}

static void memory(int n) {
	for (int i = 0; i < n; i++)
		munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	puts("0");
}

static double ms(struct timeval t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; }

static void usage(int n) {
	struct rusage u;
	usleep(1000);
	getrusage(RUSAGE_SELF, &u);
	printf("%ld %ld %g %g\n", u.ru_minflt, u.ru_nvcsw, ms(u.ru_utime), ms(u.ru_stime));
}

static void *touch(void *times) {
	int n = *(int *)times;
	char *fresh = mmap(0, 4096L * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(fresh, 4096L * n, MADV_NOHUGEPAGE);
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof all, &all);
	for (int i = 0; i < n; i++) {
		fresh[4096L * i] = 1;
		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		sched_setaffinity(0, sizeof one, &one);
	}
	sched_setaffinity(0, sizeof all, &all);
	munmap(fresh, 4096L * n);
	return 0;
}

static void events(int n) {
	pthread_t other;
	pthread_create(&other, 0, touch, &n);
	touch(&n);
	pthread_join(other, 0);
	puts("0");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t held, done;
static long taken, waited;

static void *wait_for_lock(void *times) {
	for (int n = *(int *)times; n > 0; n--) {
		sem_wait(&held);
		long begin = now();
		if (pthread_mutex_trylock(&mutex)) {
			taken++;
			pthread_mutex_lock(&mutex);
			waited += now() - begin;
		}
		pthread_mutex_unlock(&mutex);
		sem_post(&done);
	}
	return 0;
}

static void locks(int n) {
	struct timespec soon;
	pthread_t other;
	taken = waited = 0;
	sem_init(&held, 0, 0), sem_init(&done, 0, 0);
	pthread_create(&other, 0, wait_for_lock, &n);
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		sem_post(&held);
		if (n > 1)
			usleep(2000);
		else if (scanf(" %*c"))
			exit(1);
		pthread_mutex_unlock(&mutex);
		sem_wait(&done);
		pthread_mutex_lock(&mutex);
		clock_gettime(CLOCK_REALTIME, &soon);
		pthread_cond_timedwait(&condition, &mutex, &soon);
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(other, 0);
	printf("%ld %ld\n", taken, waited);
}

static void allocs(int n) {
	long asked = 0, calls = 0;
	for (int i = 1; i <= n; i++) {
		void *volatile m = malloc(i), *volatile c = calloc(i, 10), *aligned;
		m = realloc(m, 5 * i);
		if (posix_memalign(&aligned, 64, 3 * i))
			exit(1);
		void *volatile other = aligned_alloc(64, 64);
		asked += i + 10 * i + 5 * i + 3 * i + 64;
		calls += 5;
		free(m), free(c), free(aligned), free(other);
	}
	printf("%ld %ld\n", asked, calls);
}

int main(void) {
	static char in[1 << 12], out[1 << 12];
	char what[20];
	int n;
	setvbuf(stdin, in, _IOFBF, sizeof in), setvbuf(stdout, out, _IOFBF, sizeof out);
	free(malloc(10));
	puts("ready");
	fflush(stdout);
	while (scanf("%19s %d", what, &n) == 2) {
		(!strcmp(what, "files") ? files : !strcmp(what, "heap") ? heap : !strcmp(what, "network") ? network : !strcmp(what, "memory") ? memory : !strcmp(what, "events") ? events : !strcmp(what, "locks") ? locks : !strcmp(what, "allocs") ? allocs : usage)(n);
		fflush(stdout);
	}
}
