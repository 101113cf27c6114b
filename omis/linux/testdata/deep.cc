// deep: a thread recurses through optimised code, a virtual call and qsort of the C library, is
// interrupted by a signal on a stack of its own, and waits there.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int sink;

static void handler(int) {
	printf("ready %p\n", (void *)handler);
	fflush(stdout);
	while (getchar() != EOF)
		;
	sink++;
}

struct node {
	virtual int visit(int depth) = 0;
};

static int compare(const void *, const void *) {
	raise(SIGUSR1);
	return sink++;
}

struct leaf : node {
	__attribute__((noinline)) int visit(int) override {
		int v[2] = {2, 1};
		qsort(v, 2, sizeof v[0], compare);
		return v[0] + sink++;
	}
};

struct branch : node {
	node *next;
	__attribute__((noinline)) int visit(int depth) override {
		char *room = (char *)alloca(depth * 16 + 16);
		room[depth] = depth;
		int r = (depth > 0 ? (node *)this : next)->visit(depth - 1);
		return r + room[depth] + sink++;
	}
};

static void *run(void *) {
	stack_t st = {};
	st.ss_size = 65536;
	st.ss_sp = malloc(st.ss_size);
	sigaltstack(&st, 0);
	leaf l;
	branch b;
	b.next = &l;
	return (void *)(intptr_t)b.visit(20);
}

int main() {
	struct sigaction sa = {};
	sa.sa_handler = handler;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, 0);
	pthread_t t;
	pthread_create(&t, 0, run, 0);
	pthread_join(t, 0);
	return 0;
}
