// SPDX-License-Identifier: MIT
/* Lists of descriptors, and the index of their names. */
#define _GNU_SOURCE 1
#include "format/desc-list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/error.h"

struct desc_list *desc_list_new(size_t count, size_t size)
{
	size_t head = sizeof(struct desc_list) + count * sizeof(uint32_t);
	struct desc_list *list;

	head = (head + 7) & ~(size_t)7;
	list = malloc(head + size);
	if (!list)
		return NULL;
	list->count = count;
	list->size = size;
	list->records = (char *)list + head;
	atomic_init(&list->index, NULL);
	return list;
}

struct desc_list *desc_list_copy(size_t count, const void *records, size_t size)
{
	struct desc_list *list = desc_list_new(count, size);

	if (list)
		memcpy(list->records, records, size);
	return list;
}

void desc_list_free(struct desc_list *list)
{
	if (list)
		free(atomic_load_explicit(&list->index, memory_order_relaxed));
	free(list);
}

int desc_list_check(struct desc_list *list, uint64_t region_size, const char *array)
{
	size_t place = 0, i;
	const char *why;
	int err;

	for (i = 0; i < list->count; i++) {
		list->places[i] = place;
		err = tshare_desc_check(desc_list_get(list, i), list->size - place, region_size,
					&why);
		if (err)
			return fail(err, "%s[%zu].%s", array, i, why);
		place += desc_list_get(list, i)->size;
	}
	if (place != list->size)
		return fail(-EINVAL, "%s: bytes behind the last descriptor", array);
	return 0;
}

/* Names */

/* Words of 32 bits in the longest name, padded with zeros. */
#define NAME_WORDS ((TSHARE_TENSOR_NAME_MAX + 1) / 4)

/*
 * A hash table of the names. The hash is the sum of the name's words times random
 * keys, of which the highest bits are used (Dietzfelbinger's multiply-shift). The keys
 * are secret, so a peer can't choose names that collide.
 *
 * @heads has, for each hash, the first tensor's place plus one. @next has, for each
 * tensor, the next place plus one with the same hash. Places rise; 0 ends the chain.
 */
struct desc_index {
	uint64_t keys[NAME_WORDS];
	unsigned int shift; /* to the highest bits */
	uint32_t *next;	    /* in @heads */
	uint32_t heads[];
};

/* Up to so many names are compared one by one. */
#define INDEX_MIN 16

/* Reads whole words: zeros pad a name in a record, and in find_indexed(). */
static uint64_t hash(const struct desc_index *index, const char *name, size_t len)
{
	uint64_t sum = 0;
	uint32_t word;
	size_t i;

	for (i = 0; i < len; i += sizeof(word)) {
		memcpy(&word, name + i, sizeof(word));
		sum += index->keys[i / sizeof(word)] * word;
	}
	return sum >> index->shift;
}

static bool has_name(const struct tshare_desc *desc, const char *name, size_t len)
{
	return desc->name_len == len && !memcmp(tshare_desc_name(desc), name, len);
}

static int fill_random(void *buffer, size_t size)
{
	ssize_t got;

	while (size) {
		got = getrandom(buffer, size, 0);
		if (got < 0 && errno != EINTR)
			return fail(-errno, "tensors: getrandom: %s", strerror(errno));
		if (got < 0)
			continue;
		buffer = (char *)buffer + got;
		size -= got;
	}
	return 0;
}

static int index_new(const struct desc_list *list, struct desc_index **result)
{
	_cleanup_free_ struct desc_index *index = NULL;
	const struct tshare_desc *desc;
	unsigned int bits = 1;
	size_t place;
	uint32_t *head;
	int err;

	while ((size_t)1 << bits < list->count)
		bits++;
	index = calloc(1, sizeof(*index) +
				  (((size_t)1 << bits) + list->count) * sizeof(index->heads[0]));
	if (!index)
		return fail(-ENOMEM, "tensors: out of memory");
	err = fill_random(index->keys, sizeof(index->keys));
	if (err)
		return err;
	index->shift = 64 - bits;
	index->next = index->heads + ((size_t)1 << bits);
	for (place = list->count; place-- > 0;) {
		desc = desc_list_get(list, place);
		head = &index->heads[hash(index, tshare_desc_name(desc), desc->name_len)];
		index->next[place] = *head;
		*head = place + 1;
	}
	*result = no_cleanup(index);
	return 0;
}

/* Threads may build the index at the same time: the first one's stays. */
static int get_index(struct desc_list *list, const struct desc_index **result)
{
	struct desc_index *index, *other = NULL;
	int err;

	index = atomic_load_explicit(&list->index, memory_order_acquire);
	if (!index) {
		err = index_new(list, &index);
		if (err)
			return err;
		if (!atomic_compare_exchange_strong(&list->index, &other, index)) {
			free(index);
			index = other;
		}
	}
	*result = index;
	return 0;
}

static int fail_twice(const struct desc_list *list, size_t first, size_t second)
{
	return fail(-EINVAL, "specs[%zu].name: '%s' is that of specs[%zu] too", second,
		    tshare_desc_name(desc_list_get(list, first)), first);
}

int desc_list_check_unique(struct desc_list *list)
{
	const struct desc_index *index = NULL;
	const struct tshare_desc *desc;
	size_t place, other;
	int err;

	if (list->count > INDEX_MIN) {
		err = get_index(list, &index);
		if (err)
			return err;
	}
	for (place = 0; place < list->count; place++) {
		desc = desc_list_get(list, place);
		other = index ? index->next[place] : place + 2;
		while (other && other <= list->count) {
			if (has_name(desc_list_get(list, other - 1), tshare_desc_name(desc),
				     desc->name_len))
				return fail_twice(list, place, other - 1);
			other = index ? index->next[other - 1] : other + 1;
		}
	}
	return 0;
}

static int find_indexed(struct desc_list *list, const char *name, size_t len, size_t *place)
{
	char words[TSHARE_TENSOR_NAME_MAX + 1] = { 0 };
	const struct desc_index *index;
	uint32_t next;
	int err;

	err = get_index(list, &index);
	if (err)
		return err;
	memcpy(words, name, len);
	for (next = index->heads[hash(index, words, len)]; next; next = index->next[next - 1])
		if (has_name(desc_list_get(list, next - 1), name, len)) {
			*place = next - 1;
			return 0;
		}
	return -ENOENT;
}

int desc_list_find(struct desc_list *list, const char *name, size_t *place)
{
	size_t len = strnlen(name, TSHARE_TENSOR_NAME_MAX + 1), i;

	if (len > TSHARE_TENSOR_NAME_MAX)
		return -ENOENT;
	if (list->count > INDEX_MIN)
		return find_indexed(list, name, len, place);
	for (i = 0; i < list->count; i++)
		if (has_name(desc_list_get(list, i), name, len)) {
			*place = i;
			return 0;
		}
	return -ENOENT;
}
