/* SPDX-License-Identifier: GPL-2.0-only */
/* io_uring with one operation at a time. */
#ifndef TSHARE_KSELFTEST_RING_H
#define TSHARE_KSELFTEST_RING_H

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "util.h"

#define RING_ENTRIES 4

struct ring {
	int fd;
	struct io_uring_params params;
	char *queues;
	size_t queues_size;
	struct io_uring_sqe *sqes;
	size_t sqes_size;
};

static inline int ring_open(struct ring *ring)
{
	struct io_uring_params *params = &ring->params;

	*ring = (struct ring){};
	ring->fd = syscall(SYS_io_uring_setup, RING_ENTRIES, params);
	if (ring->fd < 0)
		return -errno;
	/* Both queues are in one mapping, since 5.4. */
	ring->queues_size = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
	ring->queues = mmap(NULL, ring->queues_size, RW, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes_size = params->sq_entries * sizeof(*ring->sqes);
	ring->sqes = mmap(NULL, ring->sqes_size, RW, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	return ring->queues == MAP_FAILED || ring->sqes == MAP_FAILED ? -errno : 0;
}

static inline void ring_close(struct ring *ring)
{
	munmap(ring->sqes, ring->sqes_size);
	munmap(ring->queues, ring->queues_size);
	close(ring->fd);
}

static inline int ring_register(struct ring *ring, const struct iovec *iov, unsigned int count)
{
	return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, iov, count) ?
		       -errno :
		       0;
}

static inline __u32 *ring_word(struct ring *ring, __u32 offset)
{
	return (__u32 *)(ring->queues + offset);
}

/* Fixed buffers are number 0. */
static inline int ring_submit(struct ring *ring, __u8 opcode, int fd, void *mem, __u32 size,
			      __u64 position)
{
	__u32 *tail = ring_word(ring, ring->params.sq_off.tail);
	__u32 index = *tail & *ring_word(ring, ring->params.sq_off.ring_mask);

	ring->sqes[index] = (struct io_uring_sqe){
		.opcode = opcode,
		.fd = fd,
		.off = position,
		.addr = (uintptr_t)mem,
		.len = size,
	};
	ring_word(ring, ring->params.sq_off.array)[index] = index;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0) == 1 ? 0 : -errno;
}

/* The result of what was submitted. */
static inline int ring_wait(struct ring *ring)
{
	__u32 *head = ring_word(ring, ring->params.cq_off.head);
	__u32 *tail = ring_word(ring, ring->params.cq_off.tail);
	struct io_uring_cqe *cqes = (void *)(ring->queues + ring->params.cq_off.cqes);
	int result;

	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
		if (syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL,
			    0) < 0)
			return -errno;
	result = cqes[*head & *ring_word(ring, ring->params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static inline int ring_do(struct ring *ring, __u8 opcode, int fd, void *mem, __u32 size,
			  __u64 position)
{
	return ring_submit(ring, opcode, fd, mem, size, position) ?: ring_wait(ring);
}

#endif /* TSHARE_KSELFTEST_RING_H */
