// registers: a thread spins with known values in all its registers, another waits in a system call;
// called is to be called from outside.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static volatile long calls;
static double x87 = 2.5;
static double vector[16];
volatile uint64_t data[4] = {1, 2, 3, 4};

__attribute__((noinline)) void called(void) { calls++; }
__attribute__((noinline)) uint64_t work(uint64_t x) { return x * 3 + 1; }

static void *spin(void *arg) {
	for (int i = 0; i < 16; i++)
		vector[i] = i + 0.25;
	__asm__ volatile("fldl %0; fldpi" ::"m"(x87));
	__asm__ volatile(
		"movsd 0(%0), %%xmm0; movsd 8(%0), %%xmm1; movsd 120(%0), %%xmm15\n"
		"mov $0x1111, %%rax; mov $0x2222, %%rdx; mov $0x3333, %%rcx; mov $0x4444, %%rbx\n"
		"mov $0x5555, %%rsi; mov $0x8888, %%r8; mov $-1, %%r15\n"
		"sub $512, %%rsp\n"
		"1: cmp $0x7777, %%r15; jne 1b\n"
		"add $512, %%rsp\n" ::"r"(vector)
		: "rax", "rdx", "rcx", "rbx", "rsi", "r8", "r15", "xmm0", "xmm1", "xmm15", "memory", "cc");
	return 0;
}

static void *nap(void *arg) {
	char c;
	int fds[2];
	if (pipe(fds))
		return 0;
	return (void *)(intptr_t)read(fds[0], &c, 1);
}

int main(void) {
	pthread_t s, w;
	pthread_create(&s, 0, spin, 0);
	pthread_create(&w, 0, nap, 0);
	printf("ready %p\n", (void *)called);
	printf("%p\n", (void *)data);
	fflush(stdout);
	pthread_join(s, 0);
	printf("calls %ld\n", calls);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
