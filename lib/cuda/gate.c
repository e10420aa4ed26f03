// SPDX-License-Identifier: MIT
/*
 * Each context has pages of its own: a page's registration ends with the context that it
 * was made in, and so do the streams that wait for the page. Only more work on a stream
 * could show that the stream has passed its wait. So a page stays registered until its
 * context ends.
 */
#define _GNU_SOURCE 1
#include "cuda/gate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "cuda/driver.h"

#define PAGE_BYTES 4096
#define GATE_BYTES 64 /* streams that poll for one are not disturbed by another */
#define GATES	   (PAGE_BYTES / GATE_BYTES)

struct gate_page {
	LIST_ENTRY(gate_page) entry;
	const void *context; /* NULL when it has ended */
	uint64_t address;    /* the device's */
	uint64_t memory_id;
	unsigned int marks;
	uint64_t used; /* a bit for each gate */
	uint64_t values[GATES];
	char *start;
};

_Static_assert(GATES == 64, "a page has a bit for each gate");

/* Under the process's lock, as their members are. */
static LIST_HEAD(, gate_page) pages = LIST_HEAD_INITIALIZER(pages);

static _Atomic(uint64_t) *word_of(const struct gate *gate)
{
	return (_Atomic(uint64_t) *)(gate->page->start + (size_t)gate->index * GATE_BYTES);
}

/* With the process's lock held: frees the page once its context has ended and nothing uses it. */
static void page_free_if_over(struct gate_page *page)
{
	if (page->context || page->used || page->marks)
		return;
	LIST_REMOVE(page, entry);
	munmap(page->start, PAGE_BYTES);
	free(page);
}

/* A child of fork() has no copy: after a copy on write the page would not be the device's. */
static int page_new(const void *context, struct gate_page **result)
{
	_cleanup_free_ struct gate_page *page = calloc(1, sizeof(*page));
	int err;

	if (!page)
		return -ENOMEM;
	page->start =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page->start == MAP_FAILED)
		return -ENOMEM;
	madvise(page->start, PAGE_BYTES, MADV_DONTFORK);
	page->context = context;
	err = cuda_register(page->start, PAGE_BYTES, false);
	if (err) {
		munmap(page->start, PAGE_BYTES);
		return err;
	}
	err = cuda_get_address(page->start, PAGE_BYTES, &page->address);
	if (err) {
		cuda_unregister(page->start, PAGE_BYTES);
		munmap(page->start, PAGE_BYTES);
		return err;
	}
	page->memory_id = cuda_memory_id((uintptr_t)page->start);
	*result = no_cleanup(page);
	return 0;
}

/* With the process's lock held. */
static bool take_from(struct gate_page *page, struct gate *gate)
{
	unsigned int index;

	if (!~page->used)
		return false;
	index = __builtin_ctzll(~page->used);
	page->used |= 1ULL << index;
	*gate = (struct gate){
		.page = page,
		.index = index,
		.address = page->address + (uint64_t)index * GATE_BYTES,
		.value = ++page->values[index],
	};
	return true;
}

static bool find_free(const void *context, struct gate *gate)
{
	struct gate_page *page;
	bool found = false;

	process_lock();
	for (page = LIST_FIRST(&pages); page && !found; page = LIST_NEXT(page, entry))
		found = page->context == context && take_from(page, gate);
	process_unlock();
	return found;
}

int gate_take(struct gate *gate)
{
	struct gate_page *page;
	const void *context;
	int err;

	err = cuda_current_context(&context);
	if (err)
		return err;
	while (find_free(context, gate)) {
		if (cuda_memory_is((uintptr_t)gate->page->start, gate->page->memory_id))
			return 0;
		/* The page's context has ended, and this one has its address. */
		process_lock();
		gate->page->context = NULL;
		gate_release(gate);
		process_unlock();
	}
	err = page_new(context, &page);
	if (err)
		return err;
	process_lock();
	LIST_INSERT_HEAD(&pages, page, entry);
	take_from(page, gate);
	process_unlock();
	return 0;
}

void gate_release(struct gate *gate)
{
	struct gate_page *page = gate->page;

	atomic_store(word_of(gate), gate->value);
	page->used &= ~(1ULL << gate->index);
	page_free_if_over(page);
}

struct gate_page *context_mark(void)
{
	struct gate gate = { .page = NULL };

	if (gate_take(&gate) || !gate.page)
		return NULL;
	process_lock();
	gate.page->marks++;
	gate_release(&gate);
	process_unlock();
	return gate.page;
}

void context_mark_ref(struct gate_page *mark)
{
	mark->marks++;
}

void context_mark_unref(struct gate_page *mark)
{
	if (!mark)
		return;
	mark->marks--;
	page_free_if_over(mark);
}

bool context_mark_is_lost(const struct gate_page *mark)
{
	return cuda_context_is_lost((uintptr_t)mark->start, mark->memory_id);
}
