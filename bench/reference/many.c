/* A program of ten thousand functions, f_0 to f_9999, and as many twins, g_0 to g_9999,
   which are not probed. It obeys the lines it reads, and answers each with one line:

	pin CPU             see subject.c
	cost COUNT BATCHES  nanoseconds of a call of the first COUNT functions in turn, and of their twins
	call COUNT          call each of them once
	watch CPU           start a thread on this CPU that does nothing but read the clock
	watched             end it: the longest gap between two readings, the sum of all gaps (both in
	                    nanoseconds, without waits for the processor), and the number of gaps

   Both a stop of the thread and a wait for the processor cause a gap. The kernel reports
   the waits (schedstat), so the program subtracts them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "obedient.h"

#define ALL(letter) \
	".altmacro\n" \
	".macro " letter "_one n\n" \
	".p2align 4\n" \
	".globl " letter "_\\n, " letter "_\\n\\()_ret\n" \
	".type " letter "_\\n, @function\n" \
	letter "_\\n: push %rbp\n" \
	"  lea 1(%rdi), %rax\n" \
	"  imul $1103515245, %rax, %rax\n" \
	"  pop %rbp\n" \
	letter "_\\n\\()_ret: ret\n" \
	".size " letter "_\\n, .-" letter "_\\n\n" \
	".pushsection .data.rel.ro, \"aw\"\n" \
	".quad " letter "_\\n\n" \
	".popsection\n" \
	".endm\n" \
	".pushsection .data.rel.ro, \"aw\"\n" \
	".p2align 3\n" \
	letter "_all:\n" \
	".popsection\n" \
	".set i, 0\n" \
	".rept 10000\n" \
	letter "_one %i\n" \
	".set i, i+1\n" \
	".endr\n" \
	".noaltmacro\n"

__asm__(".text\n" ALL("f") ALL("g") ".text\n");

typedef uint64_t function(uint64_t);
extern function *const f_all[10000], *const g_all[10000];

static const double BATCH = 1e6, GAP = 10e3;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static volatile uint64_t sink;

static double turn(function *const *all, int count, long times) {
	uint64_t x = 1;
	double begin = now();
	for (long i = 0; i < times; i++)
		for (int k = 0; k < count; k++)
			x = all[k](x);
	sink = x;
	return now() - begin;
}

static void cost(int count, long batches) {
	function *const *which[2] = {f_all, g_all};
	double least[2] = {1e18, 1e18};
	long times[2];
	for (int i = 0; i < 2; i++) {
		turn(which[i], count, 1);
		times[i] = BATCH / turn(which[i], count, 1);
		times[i] = times[i] < 1 ? 1 : times[i];
	}
	for (long b = 0; b < batches; b++)
		for (int i = 0; i < 2; i++) {
			double each = turn(which[i], count, times[i]) / times[i] / count;
			if (each < least[i])
				least[i] = each;
		}
	printf("%.4f %.4f\n", least[0], least[1]);
}

/* waited returns how long the thread has waited for a processor, according to the kernel. */
static double waited(int fd) {
	char text[100] = "";
	double ran, delay = 0;
	if (pread(fd, text, sizeof text - 1, 0) > 0)
		sscanf(text, "%lf %lf", &ran, &delay);
	return delay;
}

static struct {
	pthread_t thread;
	int cpu;
	atomic_int looking, end;
	double longest, stopped;
	long times;
} watch;

static void *look(void *arg) {
	pin(watch.cpu);
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);
	double delay = waited(fd);
	watch.looking = 1;
	for (double last = now(); !watch.end;) {
		double t = now(), gap = t - last;
		if (gap > GAP) {
			double all = waited(fd);
			gap -= all - delay;
			delay = all;
			if (gap > GAP) {
				watch.stopped += gap;
				watch.times++;
			}
			if (gap > watch.longest)
				watch.longest = gap;
			t = now();
		}
		last = t;
	}
	close(fd);
	return 0;
}

static void begin(int cpu) {
	watch.cpu = cpu;
	watch.longest = watch.stopped = watch.times = 0;
	watch.looking = watch.end = 0;
	if (pthread_create(&watch.thread, 0, look, 0))
		exit(1);
	while (!watch.looking)
		usleep(100);
	puts("watching");
}

static void finish(void) {
	watch.end = 1;
	pthread_join(watch.thread, 0);
	printf("%.0f %.0f %ld\n", watch.longest, watch.stopped, watch.times);
}

static int obey(const char *line) {
	int count;
	long batches;
	if (sscanf(line, "pin %d", &count) == 1) {
		pin(count);
		puts("pinned");
	} else if (sscanf(line, "cost %d %ld", &count, &batches) == 2)
		cost(count, batches);
	else if (sscanf(line, "call %d", &count) == 1)
		printf("%.0f\n", turn(f_all, count, 1));
	else if (sscanf(line, "watch %d", &count) == 1)
		begin(count);
	else if (line[0] == 'w')
		finish();
	else
		return 0;
	return 1;
}
