// SPDX-License-Identifier: MIT
/* A pool's entries: their tensors, and who gets them. */
#include "lease/entry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "format/layout.h"
#include "region/object.h"

/* Objects */

static void owner_ref(struct tensor_owner *owner)
{
	tshare_entry_ref(container_of(owner, struct tshare_entry, owner));
}

static void owner_unref(struct tensor_owner *owner)
{
	tshare_entry_unref(container_of(owner, struct tshare_entry, owner));
}

struct tshare_entry *entry_new(struct tshare_pool *pool)
{
	struct tshare_entry *entry = calloc(1, sizeof(*entry));

	if (!entry) {
		error_store("entry: out of memory");
		return NULL;
	}
	entry->owner = (struct tensor_owner){ owner_ref, owner_unref };
	atomic_init(&entry->refs, 1);
	entry->pool = tshare_pool_ref(pool);
	return entry;
}

void entry_wake_makers(struct tshare_pool *pool)
{
	struct ring *ring = &pool->directory.ring;

	if (!ring_is_waiting(ring))
		return;
	lease_step("wake");
	if (!atomic_exchange(&ring->waiting->value, 0))
		return;
	lease_step("wake_publish");
	tshare_region_publish_once(pool->seats_region, NULL);
}

void entry_add(struct tshare_entry *entry, uint32_t slot, uint32_t count, enum entry_state state)
{
	entry->slot = slot;
	entry->count = count;
	entry->has_slots = true;
	atomic_store(&entry->state, state);
	LIST_INSERT_HEAD(&entry->pool->entries, entry, entry);
}

/* With the lock held. */
static void release(struct tshare_pool *pool, uint32_t slot)
{
	if (--pool->holds[slot])
		return;
	ring_release(&pool->directory.ring, pool->seat, slot);
	entry_wake_makers(pool);
}

static void drop(struct tshare_entry *entry)
{
	struct tshare_pool *pool = entry->pool;

	if (!entry->has_slots || seats_is_child(&pool->seats))
		return;
	pthread_mutex_lock(&pool->lock);
	LIST_REMOVE(entry, entry);
	if (atomic_load(&entry->state) == ENTRY_LEASED) {
		release(pool, entry->slot);
	} else {
		directory_abandon(&pool->directory, entry->slot);
		entry_wake_makers(pool);
	}
	pthread_mutex_unlock(&pool->lock);
}

TSHARE_EXPORT
struct tshare_entry *tshare_entry_ref(struct tshare_entry *entry)
{
	refcount_get(&entry->refs);
	return entry;
}

TSHARE_EXPORT
struct tshare_entry *tshare_entry_unref(struct tshare_entry *entry)
{
	keep_errno();

	if (!entry || !refcount_put(&entry->refs))
		return NULL;
	drop(entry);
	desc_list_free(entry->list);
	tshare_pool_unref(entry->pool);
	free(entry);
	return NULL;
}

/* Tensors */

static uint64_t start_of(const struct tshare_entry *entry)
{
	return entry->pool->data_offset + entry->slot * entry->pool->slot_size;
}

static struct record *record_of(const struct tshare_entry *entry)
{
	return &entry->pool->directory.records[entry->slot];
}

uint64_t entry_base(uint64_t descs_size)
{
	const uint64_t mask = TSHARE_TENSOR_ALIGNMENT - 1;

	return descs_size <= RECORD_DESCS ? 0 : (descs_size + mask) & ~mask;
}

/* Where descriptors of that size are. */
static void *descs_of(const struct tshare_entry *entry, uint64_t size)
{
	if (size <= RECORD_DESCS)
		return record_of(entry)->descs;
	return (char *)entry->pool->region->data + start_of(entry);
}

static int fail_damaged(const struct tshare_entry *entry)
{
	return fail(-EPROTO, "pool: the entry in slot %" PRIu32 " is damaged", entry->slot);
}

/* Reads the descriptors of an entry that somebody else has made. */
static int read_tensors(struct tshare_entry *entry)
{
	const struct record *record = record_of(entry);
	uint64_t room = entry->count * entry->pool->slot_size;
	uint64_t count = atomic_load(&record->desc_count), size = atomic_load(&record->descs_size);

	if (size > room || count > TSHARE_TENSOR_LIMIT || entry_base(size) > room)
		return fail_damaged(entry);
	entry->list = desc_list_copy(count, descs_of(entry, size), size);
	if (!entry->list)
		return fail(-ENOMEM, "entry: out of memory");
	entry->base = start_of(entry) + entry_base(size);
	room -= entry_base(size);
	return desc_list_check(entry->list, room, "tensors") ? fail_damaged(entry) : 0;
}

void entry_write_tensors(struct tshare_entry *entry)
{
	const struct desc_list *list = entry->list;
	struct record *record = record_of(entry);

	memcpy(descs_of(entry, list->size), list->records, list->size);
	atomic_store(&record->desc_count, list->count);
	atomic_store(&record->descs_size, list->size);
	entry->base = start_of(entry) + entry_base(list->size);
}

TSHARE_EXPORT
size_t tshare_entry_get_tensor_count(const struct tshare_entry *entry)
{
	return entry->list->count;
}

static int check_index(const struct tshare_entry *entry, size_t index)
{
	if (index >= entry->list->count)
		return fail(-ENOENT, "index: %zu of %zu tensors", index, entry->list->count);
	return 0;
}

TSHARE_EXPORT
int tshare_entry_get_tensor_name(const struct tshare_entry *entry, size_t index, const char **name)
{
	int err = check_index(entry, index);

	if (!err)
		*name = tshare_desc_name(desc_list_get(entry->list, index));
	return err;
}

TSHARE_EXPORT
int tshare_entry_get_tensor(struct tshare_entry *entry, size_t index, struct tshare_tensor **tensor)
{
	bool made_here = atomic_load(&entry->state) == ENTRY_MADE_HERE;
	int64_t dims[2 * TSHARE_NDIM_LIMIT]; /* shape, then strides */
	const struct tshare_desc *desc;
	struct tshare_spec spec;
	int err;

	err = check_index(entry, index);
	if (err)
		return err;
	desc = desc_list_get(entry->list, index);
	memcpy(dims, tshare_desc_shape(desc), 2 * sizeof(*dims) * desc->ndim);
	spec = (struct tshare_spec){
		.size = sizeof(spec),
		.name = tshare_desc_name(desc),
		.dtype = { desc->dtype_code, desc->dtype_bits, desc->dtype_lanes },
		.ndim = desc->ndim,
		.shape = dims,
		.strides = dims + desc->ndim,
		.byte_offset = entry->base + desc->byte_offset,
	};
	err = tshare_region_view(entry->pool->region, &spec, made_here ? 0 : TSHARE_READONLY,
				 tensor);
	if (!err)
		tensor_set_owner(*tensor, &entry->owner);
	return err;
}

TSHARE_EXPORT
int tshare_entry_find_tensor(struct tshare_entry *entry, const char *name,
			     struct tshare_tensor **tensor)
{
	size_t place;
	int err = -ENOENT;

	if (!name)
		return fail(-EINVAL, "name: is NULL");
	if (entry->list->count)
		err = desc_list_find(entry->list, name, &place);
	if (err == -ENOENT)
		return fail(err, "name: no tensor '%s' among %zu", name, entry->list->count);
	return err ? err : tshare_entry_get_tensor(entry, place, tensor);
}

/* Keys */

int entry_read_key(struct tshare_pool *pool, const void *key, size_t size, struct key *known)
{
	int err = pool_check(pool);

	if (err)
		return err;
	if (!key)
		return fail(-EINVAL, "key: is NULL");
	if (!size || size > TSHARE_POOL_KEY_MAX)
		return fail(-EINVAL, "key_size: %zu is not 1 to %d", size, TSHARE_POOL_KEY_MAX);
	*known = (struct key){ .bytes = key, .size = size };
	directory_hash(&pool->directory, known);
	return 0;
}

/* Getting */

/*
 * Leases the entry in @slot, if it has the key: 0; -ENOENT if it hasn't, or is being made; -EAGAIN
 * if it was another one meanwhile.
 */
static int lease(struct tshare_entry *entry, const struct key *key, uint32_t slot)
{
	struct tshare_pool *pool = entry->pool;
	struct directory *directory = &pool->directory;
	enum ring_lease got = RING_LEASED;
	bool undone = false;
	uint64_t number;
	uint32_t count;

	lease_step("get_number");
	number = ring_number(&directory->ring, slot);
	if (!number)
		return -ENOENT;
	if (!pool->holds[slot])
		got = ring_lease(&directory->ring, pool->seat, slot, number, &undone);
	if (undone)
		entry_wake_makers(pool);
	if (got == RING_WRITTEN || got == RING_CHANGED)
		return got == RING_WRITTEN ? -ENOENT : -EAGAIN;
	pool->holds[slot]++;
	lease_step("get_key");
	count = directory_count(directory, slot);
	if (!count || !directory_has_key(directory, slot, key)) {
		release(pool, slot);
		return -ENOENT;
	}
	directory_touch(directory, slot);
	entry_add(entry, slot, count, ENTRY_LEASED);
	return 0;
}

static int find(struct tshare_entry *entry, const struct key *key)
{
	struct directory *directory = &entry->pool->directory;
	uint32_t tries = 2 * directory->ring.slots; /* makers that are faster end this call, too */
	uint64_t at = 0;
	int64_t slot;
	int err;

	while (tries-- && (slot = directory_next(directory, key, &at)) >= 0) {
		err = lease(entry, key, slot);
		if (!err)
			return 0;
		if (err == -EAGAIN)
			at = 0;
	}
	return -ENOENT;
}

TSHARE_EXPORT
int tshare_pool_get(struct tshare_pool *pool, const void *key, size_t key_size,
		    struct tshare_entry **entry)
{
	struct tshare_entry *new;
	struct key known;
	int err;

	err = entry_read_key(pool, key, key_size, &known);
	if (err)
		return err;
	new = entry_new(pool);
	if (!new)
		return -ENOMEM;
	pthread_mutex_lock(&pool->lock);
	err = find(new, &known);
	pthread_mutex_unlock(&pool->lock);
	if (!err)
		err = read_tensors(new);
	else
		err = fail(err, "key: the pool has no entry of that key");
	if (err) {
		tshare_entry_unref(new);
		return err;
	}
	*entry = new;
	return 0;
}

/* Memory that another library names */

static int find_entry(struct owners *owners, uint64_t offset, struct tensor_owner **owner)
{
	struct tshare_pool *pool = container_of(owners, struct tshare_pool, owners);
	struct tshare_entry *entry;

	if (offset < pool->data_offset)
		return 0;
	for (entry = LIST_FIRST(&pool->entries); entry; entry = LIST_NEXT(entry, entry)) {
		if (offset < start_of(entry) ||
		    offset - start_of(entry) >= entry->count * pool->slot_size ||
		    !refcount_get_unless_zero(&entry->refs))
			continue;
		*owner = &entry->owner;
		return 0;
	}
	return fail(-ENOENT, "data: is in a slot of a pool, and nobody holds its entry");
}

static void unref_pool(struct owners *owners)
{
	tshare_pool_unref(container_of(owners, struct tshare_pool, owners));
}

void pool_entries_begin(struct tshare_pool *pool)
{
	pool->owners = (struct owners){
		.refs = &pool->refs,
		.seats = &pool->seats,
		.lock = &pool->lock,
		.find = find_entry,
		.unref = unref_pool,
	};
	owners_begin(pool->region, &pool->owners);
}

TSHARE_EXPORT
struct tshare_entry *tshare_tensor_get_entry(const struct tshare_tensor *tensor)
{
	struct tensor_owner *owner = tensor_get_owner(tensor);

	if (!owner || owner->unref != owner_unref)
		return NULL;
	return container_of(owner, struct tshare_entry, owner);
}
