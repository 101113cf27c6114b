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
	long pace;      /* microseconds to rest after a round */
	atomic_int stop;
};

struct worker {
	struct job *job;
	int number;
	char name[24]; /* the kernel keeps 15 characters */
	pid_t tid;
	struct counts *counts;     /* its own, set by the thread */
	_Atomic uint64_t checksum; /* of all rounds so far */
	atomic_long wrong;         /* rounds with a wrong product */
};

/* work does the rounds of a worker: make two matrices, multiply them, check. */
void work(struct worker *w);

#endif
