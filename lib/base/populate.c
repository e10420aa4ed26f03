// SPDX-License-Identifier: MIT
/* Populates a mapping before a driver pins its pages one by one. */
#define _GNU_SOURCE 1
#include "base/populate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/thread.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Bytes that a thread takes at a time; smaller mappings aren't worth a second thread. */
#define CHUNK (16ULL << 20)

/* More threads would wait for the locks of the one mapping. */
#define THREADS_MAX 16

/* The most that Linux can be built for. It refuses sets with room for fewer than its own. */
#define CPUS_MAX 8192

struct work {
	char *start;
	uint64_t size;
	int advice;
	_Atomic(uint64_t) next;
};

static void *populate_chunks(void *data)
{
	struct work *work = data;
	uint64_t offset, left;

	for (;;) {
		offset = atomic_fetch_add(&work->next, CHUNK);
		if (offset >= work->size)
			return NULL;
		left = work->size - offset;
		if (madvise(work->start + offset, left < CHUNK ? left : CHUNK, work->advice))
			atomic_store(&work->next, work->size);
	}
}

static unsigned int usable_cpus(void)
{
	cpu_set_t cpus[CPUS_MAX / CPU_SETSIZE];

	return sched_getaffinity(0, sizeof(cpus), cpus) ? 1 : CPU_COUNT_S(sizeof(cpus), cpus);
}

void populate(void *start, uint64_t size, bool writable)
{
	struct work work = {
		.start = start,
		.size = size,
		.advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ,
	};
	const uint64_t chunks = (size + CHUNK - 1) / CHUNK;
	unsigned int wanted = usable_cpus(), started;
	pthread_t threads[THREADS_MAX];

	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	if (wanted > chunks)
		wanted = chunks;
	started = wanted > 1 ? threads_start(threads, wanted - 1, populate_chunks, &work) : 0;
	populate_chunks(&work);
	while (started)
		pthread_join(threads[--started], NULL);
}
