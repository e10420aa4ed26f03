// SPDX-License-Identifier: MIT
/*
 * Gets the pictures of some keys from a pool, and makes those that it doesn't have. Waits for Enter
 * then. pool.py does the same in Python, and each finds what the other has made.
 *
 *	pool NAME KEY...
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tshare.h>

#define POOL_SIZE (64 << 20)

static struct tshare_pool *open_pool(struct tshare_ctx *ctx, const char *name)
{
	/* The pool goes with the last process that has it open. */
	const struct tshare_options users = {
		.size = sizeof(users),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	const struct tshare_pool_options options = { .size = sizeof(options), .region = &users };
	/* Another process may create it at the same time. */
	const struct tshare_open_options wait = { .size = sizeof(wait), .timeout_ns = 1000000000 };
	struct tshare_pool *pool;
	int error;

	error = tshare_pool_create(ctx, name, POOL_SIZE, &options, &pool);
	if (error == -EEXIST)
		error = tshare_pool_open(ctx, name, &wait, &pool);
	if (error < 0)
		errx(1, "%s", tshare_error_get());
	return pool;
}

static uint8_t *pixels_of(struct tshare_entry *entry)
{
	struct tshare_tensor *tensor;
	uint8_t *pixels;

	if (tshare_entry_find_tensor(entry, "pixels", &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	pixels = tshare_tensor_get_data(tensor);
	/* The entry holds the memory. */
	tshare_tensor_unref(tensor);
	return pixels;
}

static void look_at(struct tshare_pool *pool, const char *key)
{
	const int64_t shape[] = { 480, 640 };
	const struct tshare_spec pixels = {
		.size = sizeof(pixels),
		.name = "pixels",
		.dtype = TSHARE_UINT8,
		.ndim = 2,
		.shape = shape,
	};
	struct tshare_entry *entry;
	const char *what = "found";
	int error;

	while ((error = tshare_pool_get(pool, key, strlen(key), &entry)) == -ENOENT) {
		error = tshare_pool_make(pool, key, strlen(key), &pixels, 1, -1, &entry);
		/* Another process was faster. */
		if (error == -EEXIST)
			continue;
		if (error < 0)
			break;
		memset(pixels_of(entry), strlen(key), shape[0] * shape[1]);
		error = tshare_entry_finish(entry);
		what = "made";
		break;
	}
	if (error < 0)
		errx(1, "%s", tshare_error_get());
	printf("%s '%s', its pixels are %d\n", what, key, pixels_of(entry)[0]);
	tshare_entry_unref(entry);
}

int main(int argc, char **argv)
{
	struct tshare_pool *pool;
	struct tshare_ctx *ctx;
	int i;

	if (argc < 3)
		errx(2, "usage: pool NAME KEY...");
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	pool = open_pool(ctx, argv[1]);
	for (i = 2; i < argc; i++)
		look_at(pool, argv[i]);
	printf("waiting for Enter\n");
	fflush(stdout);
	getchar();
	tshare_pool_unref(pool);
	tshare_ctx_unref(ctx);
	return 0;
}
