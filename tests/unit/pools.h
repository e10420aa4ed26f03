/* SPDX-License-Identifier: MIT */
/* Helpers for tests of pools: entries of one tensor of bytes, which all are the same. */
#ifndef TSHARE_TESTS_POOLS_H
#define TSHARE_TESTS_POOLS_H

#include <pthread.h>
#include <stdint.h>

#include "partner.h"

#define PAGE 4096

/* Bytes of an entry of so many slots of a page: what its descriptor takes is left. */
#define SLOTS(count) ((count)*PAGE - 200)

/* Creates a pool in the test's context. */
struct tshare_pool *new_pool(const char *name, uint32_t slots, uint64_t slot_size);

/* Opens it, as another process would. */
struct tshare_pool *open_pool(const char *name);

struct tshare_pool_info info_of(struct tshare_pool *pool);

int make_entry(struct tshare_pool *pool, const char *key, int64_t bytes, int64_t timeout_ns,
	       struct tshare_entry **entry);
void fill_entry(struct tshare_entry *entry, int byte);

/* Makes an entry of as many bytes, each that number; 0 or the error. */
int put_entry(struct tshare_pool *pool, const char *key, int64_t bytes, int byte);

/* NULL if there is none. */
struct tshare_entry *get_entry(struct tshare_pool *pool, const char *key);

/* The byte that all of the entry's are; -1 if they aren't the same. */
int byte_of(struct tshare_entry *entry);

/* The same of a key, which it doesn't keep; -ENOENT if there is none. */
int byte_at(struct tshare_pool *pool, const char *key);

/* A thread that makes an entry, and waits for it; then drops it. */
struct making {
	struct tshare_pool *pool;
	const char *key;
	int64_t bytes;
	int result;
	pthread_t thread;
};

void start_making(struct making *making);
int end_making(struct making *making);

#endif /* TSHARE_TESTS_POOLS_H */
