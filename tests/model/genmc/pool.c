// SPDX-License-Identifier: MIT
/*
 * Processes that share a pool. Each does what its string in PROCESSES says, a key at a time: A2
 * makes the entry of key A of two slots, and drops it; a gets it; !a gets it, and must find it; xA
 * removes it. With SAME all keys have one hash.
 */
#include "process.h"

#include "lease/entry.h"

#undef keep_errno
#define keep_errno()	       ((void)0)
#define nanosleep(pause, left) ((void)0)

/* GenMC has none of these. */
#define ECANCELED			  125
#define memcpy(to, from, size)		  copy((char *)(to), (const char *)(from), size)
#define memcmp(a, b, size)		  compare((const char *)(a), (const char *)(b), size)
#define __builtin_add_overflow(a, b, sum) (*(sum) = (a) + (b), 0)

static void copy(char *to, const char *from, size_t size)
{
	while (size--)
		*to++ = *from++;
}

static bool compare(const char *a, const char *b, size_t size)
{
	while (size--)
		if (*a++ != *b++)
			return true;
	return false;
}

/* Processes wait for the makers' lock. */
static int seat_or_makers_lock(const struct seats *seats, int seat)
{
	int err = seats_lock(seats, seat);

	if (seat == TSHARE_STREAM_CONSUMERS)
		__VERIFIER_assume(!err);
	return err;
}

#define seats_lock		seat_or_makers_lock
#define pool_check(pool)	0
#define tshare_pool_ref(pool)	(pool)
#define tshare_pool_unref(pool) ((void)(pool))
#define desc_list_free(list)	((void)(list))
#define free(entry)		((void)(entry))
#define entry_new		entry_new_of_heap

#include "lease/ring.c"

#include "lease/directory.c"

#include "lease/entry.c"
#undef entry_new
#include "lease/make.c"

#define INDEX 8

static struct ring_head head;
static _Atomic(uint64_t) numbers[SLOTS], places[INDEX];
static _Atomic(uint32_t) counts[SLOTS], makers[SLOTS];
static struct ring_line words[SLOTS], keep, waiting;
static struct record records[SLOTS];
static uint64_t data[SLOTS], ages[3][SLOTS];
static uint32_t starts[3][SLOTS], queues[3][SLOTS], holds[3][SLOTS];
static struct tshare_entry entries[3]; /* a process has one at a time */
static struct desc_list no_descs;

#define POOL(i)                                                                                \
	{                                                                                      \
		.maker = true,                                                               \
		.seats_region = SEATS_REGION,                                                \
		.seat = i,                                                                   \
		.directory = {                                                               \
			.ring = { SLOTS, 0, 0, &head, numbers, words, &keep, &waiting },     \
			.counts = counts,                                                    \
			.makers = makers,                                                    \
			.records = records,                                                  \
			.index = places,                                                     \
			.index_size = INDEX,                                                 \
			.ages = ages[i],                                                     \
			.starts = starts[i],                                                 \
			.queue = queues[i],                                                  \
		},                                                                           \
		.slot_size = 1,                                                              \
		.holds = holds[i], \
	}
static struct tshare_pool pools[3] = { POOL(0), POOL(1), POOL(2) };

struct tshare_entry *entry_new(struct tshare_pool *pool)
{
	struct tshare_entry *entry = &entries[pool->seat];

	atomic_init(&entry->refs, 1);
	entry->pool = pool;
	entry->list = &no_descs;
	entry->has_slots = false;
	return entry;
}

static void read_data(const struct tshare_entry *entry, char key)
{
	uint32_t i;

	for (i = 0; i < entry->count; i++)
		assert(data[entry->slot + i] == (uint64_t)key);
}

static void make(struct tshare_entry *entry, const struct key *key, uint32_t count)
{
	struct request request = { .count = count };
	uint32_t i;

	request.key.bytes = key->bytes;
	request.key.size = key->size;
	request.key.hash = key->hash;
	if (make_within(entry, &request, INT64_MAX - 1))
		return;
	for (i = 0; i < entry->count; i++)
		data[entry->slot + i] = *key->bytes;
	if (FINISH) {
		tshare_entry_finish(entry);
		read_data(entry, *key->bytes);
	}
}

static void *process(void *arg)
{
	static const char *const strings[] = { PROCESSES };
	static const char names[] = "ABC";
	struct tshare_pool *pool = arg;
	const char *does = strings[pool->seat];
	struct tshare_entry *entry;
	struct key key = { .size = 1 };
	char kind;

	for (; *does; does++) {
		kind = *does;
		if (kind == 'x' || kind == '!')
			does++;
		key.bytes = &names[(*does & ~32) - 'A'];
		key.hash = SAME ? 0 : *key.bytes - 'A';
		entry = entry_new(pool);
		if (kind == 'x')
			remove_entries(pool, &key);
		else if (kind <= 'C' && kind >= 'A')
			make(entry, &key, *++does - '0');
		else if (!find(entry, &key))
			read_data(entry, *key.bytes);
		else
			assert(kind != '!');
		tshare_entry_unref(entry);
	}
	return NULL;
}

int main(void)
{
	static const char *const strings[] = { PROCESSES };
	const int count = sizeof(strings) / sizeof(*strings);
	pthread_t threads[3];
	int i, slot;

	for (i = 0; i < count; i++)
		seats_lock(&pools[i].seats, i);
	for (i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, process, &pools[i]);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);

	/* Nobody sleeps beside free slots, and no bit is left. */
	assert(!was_left_asleep());
	for (slot = 0; slot < SLOTS; slot++)
		assert(!words[slot].value && !makers[slot]);
	return 0;
}
