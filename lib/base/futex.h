/* SPDX-License-Identifier: MIT */
/* Sleeping on words of memory, and waking the sleepers. */
#ifndef TSHARE_BASE_FUTEX_H
#define TSHARE_BASE_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's struct futex_waitv, which its headers have since Linux 5.16. */
struct futex_word {
	uint64_t value; /* the word must still have it when the sleep begins */
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};

/* The most words that one sleep takes. */
#define FUTEX_WORDS_MAX 128

/* A word that processes share, or a word of this process alone. */
struct futex_word futex_shared(const void *word, uint32_t value);
struct futex_word futex_private(const void *word, uint32_t value);

/*
 * Sleeps until one of @words is woken, and returns its index. -EAGAIN if a word has
 * another value already; -ETIMEDOUT at @deadline of the monotonic clock, INT64_MAX
 * for none; -EINTR; -EFAULT.
 *
 * If the kernel can't sleep on several words, the call sleeps on the first one, and
 * returns -ETIMEDOUT after 100 ms at most: the caller checks the other words and
 * the clock.
 */
int futex_sleep(struct futex_word *words, unsigned int count, int64_t deadline);

/*
 * The same on one word of this process alone. Any signal handler ends it, also one with
 * SA_RESTART.
 */
int futex_sleep_private(const void *word, uint32_t value, int64_t deadline);

/* Whether the kernel can sleep on several words: from Linux 5.16 on, if no filter forbids it. */
bool futex_sleeps_on_several(void);

void futex_wake_shared(const void *word);
void futex_wake_private(const void *word);

#endif /* TSHARE_BASE_FUTEX_H */
