// SPDX-License-Identifier: MIT
#include "pools.h"

#include <errno.h>
#include <string.h>

struct tshare_pool *new_pool(const char *name, uint32_t slots, uint64_t slot_size)
{
	const struct tshare_pool_options options = { .size = sizeof(options), .slots = slots };
	struct tshare_pool *pool;

	CHECK(!tshare_pool_create(ctx, name, slots * slot_size, &options, &pool));
	return pool;
}

struct tshare_pool *open_pool(const char *name)
{
	struct tshare_pool *pool;

	CHECK(!tshare_pool_open(ctx, name, NULL, &pool));
	return pool;
}

struct tshare_pool_info info_of(struct tshare_pool *pool)
{
	struct tshare_pool_info info = { .size = sizeof(info) };

	CHECK(!tshare_pool_get_info(pool, &info));
	return info;
}

int make_entry(struct tshare_pool *pool, const char *key, int64_t bytes, int64_t timeout_ns,
	       struct tshare_entry **entry)
{
	const struct tshare_spec spec = SPEC("x", TSHARE_UINT8, 1, &bytes);

	return tshare_pool_make(pool, key, strlen(key), &spec, 1, timeout_ns, entry);
}

void fill_entry(struct tshare_entry *entry, int byte)
{
	struct tshare_tensor *tensor;

	CHECK(!tshare_entry_get_tensor(entry, 0, &tensor));
	CHECK(!tshare_tensor_is_readonly(tensor));
	memset(tshare_tensor_get_data(tensor), byte, tshare_tensor_get_shape(tensor)[0]);
	tshare_tensor_unref(tensor);
}

int put_entry(struct tshare_pool *pool, const char *key, int64_t bytes, int byte)
{
	struct tshare_entry *entry;
	int err = make_entry(pool, key, bytes, 0, &entry);

	if (err)
		return err;
	fill_entry(entry, byte);
	CHECK(!tshare_entry_finish(entry));
	tshare_entry_unref(entry);
	return 0;
}

struct tshare_entry *get_entry(struct tshare_pool *pool, const char *key)
{
	struct tshare_entry *entry;

	return tshare_pool_get(pool, key, strlen(key), &entry) ? NULL : entry;
}

int byte_of(struct tshare_entry *entry)
{
	struct tshare_tensor *tensor;
	const unsigned char *data;
	int64_t i, count;
	int byte;

	if (tshare_entry_get_tensor(entry, 0, &tensor))
		return -1;
	data = tshare_tensor_get_data(tensor);
	count = tshare_tensor_get_shape(tensor)[0];
	byte = data[0];
	for (i = 0; i < count; i++)
		if (data[i] != byte)
			byte = -1;
	tshare_tensor_unref(tensor);
	return byte;
}

int byte_at(struct tshare_pool *pool, const char *key)
{
	struct tshare_entry *entry;
	int byte = tshare_pool_get(pool, key, strlen(key), &entry);

	if (byte)
		return byte;
	byte = byte_of(entry);
	tshare_entry_unref(entry);
	return byte;
}

static void *run_making(void *data)
{
	struct making *making = data;
	struct tshare_entry *entry;

	making->result = make_entry(making->pool, making->key, making->bytes, LONG, &entry);
	if (!making->result)
		tshare_entry_unref(entry);
	return NULL;
}

void start_making(struct making *making)
{
	CHECK(!pthread_create(&making->thread, NULL, run_making, making));
	sleep_ns(20 * MS);
}

int end_making(struct making *making)
{
	CHECK(!pthread_join(making->thread, NULL));
	return making->result;
}
