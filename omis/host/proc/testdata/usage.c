// usage FILE: works a little in three threads, one of which ends. Then it prints its
// resource use according to system calls, and waits for a line:
//
//	ready
//	process UTIME STIME MAXRSS MINFLT MAJFLT INBLOCK OUBLOCK NVCSW NIVCSW NICE PPID
//	                         (the switches of the remaining threads)
//	thread TID CPU STIME NICE UTIME MINFLT MAJFLT INBLOCK OUBLOCK NVCSW NIVCSW    (of each)
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t worked, told;
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec / 1e6; }

static void burn(clockid_t clock, double s) {
	struct timespec t;
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		syscall(SYS_getppid);
		clock_gettime(clock, &t);
	} while (t.tv_sec + t.tv_nsec / 1e9 < s);
}

static void tell_thread(void) {
	struct rusage u;
	struct timespec t;
	int tid = syscall(SYS_gettid);
	getrusage(RUSAGE_THREAD, &u);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	pthread_mutex_lock(&telling);
	printf("thread %d %f %f %d %f %ld %ld %ld %ld %ld %ld\n", tid, t.tv_sec + t.tv_nsec / 1e9, seconds(u.ru_stime), getpriority(PRIO_PROCESS, tid),
		seconds(u.ru_utime), u.ru_minflt, u.ru_majflt, u.ru_inblock, u.ru_oublock, u.ru_nvcsw, u.ru_nivcsw);
	pthread_mutex_unlock(&telling);
}

static void *stay(void *nice) {
	setpriority(PRIO_PROCESS, syscall(SYS_gettid), (intptr_t)nice);
	pthread_setname_np(pthread_self(), "a) S (b");
	burn(CLOCK_THREAD_CPUTIME_ID, 0.1);
	for (int i = 0; i < 40; i++)
		usleep(500);
	pthread_barrier_wait(&worked);
	pthread_barrier_wait(&told);
	tell_thread();
	pthread_barrier_wait(&worked);
	pause();
	return 0;
}

static struct rusage left; // of the thread that ends

static void *leave(void *unused) {
	burn(CLOCK_THREAD_CPUTIME_ID, 0.05);
	getrusage(RUSAGE_THREAD, &left);
	return unused;
}

static void touch_memory(size_t size) {
	char *m = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(m, 1, size);
	munmap(m, size);
}

// use_file writes to the disk, and reads uncached data from it.
static void use_file(const char *path) {
	static char block[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (write(fd, block, sizeof block) < 0 || fsync(fd))
		perror(path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (pread(fd, block, sizeof block, 0) < 0)
		perror(path);
	close(fd);
}

int main(int argc, char **argv) {
	struct rusage u;
	pthread_t t;
	char line[8];
	setpriority(PRIO_PROCESS, 0, 3);
	pthread_barrier_init(&worked, 0, 3);
	pthread_barrier_init(&told, 0, 3);
	pthread_create(&t, 0, leave, 0);
	pthread_join(t, 0);
	pthread_create(&t, 0, stay, (void *)5);
	pthread_create(&t, 0, stay, (void *)7);
	// More than the parent has used: getrusage also counts the program that exec replaced.
	touch_memory(256 << 20);
	use_file(argv[1]);
	pthread_barrier_wait(&worked);
	printf("ready\n");
	pthread_barrier_wait(&told);
	tell_thread();
	pthread_barrier_wait(&worked);
	getrusage(RUSAGE_SELF, &u);
	printf("process %f %f %ld %ld %ld %ld %ld %ld %ld %d %d\n", seconds(u.ru_utime), seconds(u.ru_stime), u.ru_maxrss << 10,
		u.ru_minflt, u.ru_majflt, u.ru_inblock, u.ru_oublock, u.ru_nvcsw - left.ru_nvcsw, u.ru_nivcsw - left.ru_nivcsw, getpriority(PRIO_PROCESS, 0), getppid());
	fflush(stdout);
	return fgets(line, sizeof line, stdin) == 0;
}
