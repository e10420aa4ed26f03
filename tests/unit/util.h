/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of the public API. */
#ifndef TSHARE_TESTS_UTIL_H
#define TSHARE_TESTS_UTIL_H

#include <stdbool.h>
#include <stddef.h>

#include <tshare.h>

#include "tap.h"

/*
 * After so many seconds a child that a test runs has hung. The slowest machine is a guest in
 * emulation, on a processor that others keep busy: it may stand still for many seconds.
 */
#define HANG_SECONDS 300

/* The context of a test, with the backend that TSHARE_BACKEND names or the default one. */
extern struct tshare_ctx *ctx;

void open_context(void);
void close_context(void);

/* tshare_ctx_new() with that backend. */
int ctx_new(const char *backend, struct tshare_ctx **new);

struct tshare_limits limits_of(struct tshare_ctx *context);

/* A region's name that no other test program has at the same time; the last four stay valid. */
const char *unique(const char *stem);

/* A named region of one page without tensors, in the test's context. */
struct tshare_region *new_region(const char *name);

/* As new_region(), but with that mode. */
struct tshare_region *new_region_mode(const char *name, uint32_t mode);

extern const struct tshare_open_options readonly_options;

extern const int64_t shape_4x8[2];

struct tshare_tensor *new_tensor(const char *name, struct tshare_dtype dtype, int32_t ndim,
				 const int64_t *shape);

/* The initialiser of a struct tshare_spec: its members without the size, in their order. */
#define SPEC(...)                                        \
	{                                                \
		sizeof(struct tshare_spec), __VA_ARGS__, \
	}

/* What tshare_ctx_list() has reported of the region @name, and how often. */
struct found {
	const char *name;
	struct tshare_region_info info;
	int count;
};

/* For tshare_ctx_list(), with a struct found. */
int find_listed(const struct tshare_region_info *info, void *data);

bool all_zero(const void *data, size_t size);

/* Bytes that look random and are the same each time; never freed. */
unsigned char *new_content(size_t size);

void write_all(int fd, const void *data, size_t size);

/* Number of file descriptors of this process. */
size_t open_descriptors(void);

/* Lets the process have that many files open besides those that it has; for children. */
bool leave_descriptors(unsigned int count);

/* Whether the text of the last error has @part. */
bool error_says(const char *part);

/* Whether a thread sleeps: one of this process, or the first of another. */
bool is_asleep(int thread);

/* Of that many rounds of a race, a quarter if TSHARE_TEST_SHORT is set. */
int rounds(int all);

/* What tshare_region_open() of the name returns. */
int open_error(const char *name);

/* Whether the name can be opened for reading, in a context of its own. */
bool exists(const char *name);

/* Two users other than root. */
#define USER_ONE 64001
#define USER_TWO 64002

/* Becomes that user permanently, without other groups; for children. */
bool become(unsigned int uid);

/*
 * A socket pair to keep two processes in step: send_byte() and await_byte()
 * fail when the other end is closed.
 */
struct steps {
	int ends[2];
};

bool steps_open(struct steps *steps);
void steps_close(struct steps *steps);
bool send_byte(int end);
bool await_byte(int end);

/* SCM_RIGHTS over one end; receive_fd() gives the descriptor or -1. */
bool send_fd(int end, int fd);
int receive_fd(int end);

#endif /* TSHARE_TESTS_UTIL_H */
