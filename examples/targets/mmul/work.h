/* The work of one thread of mmul. */
#ifndef WORK_H
#define WORK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/mmul.h"

struct job {
	int size;       /* of the matrices */
	long rounds;    /* 0: until stop is set */
	long pace;      /* microseconds to sleep after a round */
	atomic_int stop;
};

struct worker {
	struct job *job;
	int number;
	char name[24]; /* the kernel keeps 15 characters */
	pid_t tid;
	struct counts *counts;     /* of this thread, set by the thread */
	_Atomic uint64_t checksum; /* of all rounds so far */
	atomic_long wrong;         /* rounds with a wrong product */
};

/* work executes the rounds of a worker: create two matrices, multiply, check. */
void work(struct worker *w);

#endif
