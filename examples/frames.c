// SPDX-License-Identifier: MIT
/*
 * A producer writes frames into two slots in turn, a consumer reads them. Each
 * sleeps while it waits for the other. frames.py does the same, so that either
 * side may be in either language.
 *
 *	frames produce NAME [COUNT] & frames consume NAME
 *
 * Each side publishes a region of its own for the other to wait for. The region
 * NAME holds the slots; its generation is the number of frames written. The
 * generation of NAME-taken is the number of frames read.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tshare.h>

#define SLOTS	     2
#define FRAME_LEN    1024
#define WAIT_FOREVER (-1)
#define DONT_SPIN    0

static struct tshare_ctx *ctx;

static void name_of_taken(const char *name, char *buffer, size_t size)
{
	if (snprintf(buffer, size, "%s-taken", name) >= (int)size)
		errx(1, "the name is too long");
}

/* Returns -EOWNERDEAD when the other side has exited. */
static int wait_until(struct tshare_region *region, uint64_t generation)
{
	uint64_t now;
	int error = tshare_region_get_generation(region, &now);

	while (!error && now < generation) {
		error = tshare_region_wait(region, now, WAIT_FOREVER, DONT_SPIN, &now);
		if (error == -EINTR)
			error = 0;
	}
	return error;
}

static int64_t *frame(struct tshare_tensor *slots, uint64_t number)
{
	return (int64_t *)tshare_tensor_get_data(slots) + number % SLOTS * FRAME_LEN;
}

static void produce(const char *name, uint64_t count)
{
	const int64_t shape[] = { SLOTS, FRAME_LEN };
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	struct tshare_region *region, *taken;
	struct tshare_tensor *slots;
	char buffer[TSHARE_NAME_MAX + 1];

	/* In the reverse order of consume(), which then finds both or neither. */
	name_of_taken(name, buffer, sizeof(buffer));
	if (tshare_region_create(ctx, buffer, 1, NULL, 0, NULL, &taken) < 0 ||
	    tshare_tensor_create(ctx, name, TSHARE_INT64, 2, shape, NULL, &slots) < 0)
		errx(1, "%s", tshare_error_get());
	region = tshare_tensor_get_region(slots);
	printf("produce: '%s' has %d slots\n", name, SLOTS);
	fflush(stdout);

	for (uint64_t n = 0; n < count; n++) {
		/* A slot is reused when the consumer has read its frame. */
		if (n >= SLOTS && wait_until(taken, n - SLOTS + 1) < 0)
			errx(1, "%s", tshare_error_get());
		for (int i = 0; i < FRAME_LEN; i++)
			frame(slots, n)[i] = (int64_t)n;
		if (tshare_region_publish(region, NULL) < 0)
			errx(1, "%s", tshare_error_get());
	}
	if (wait_until(taken, count) < 0)
		errx(1, "%s", tshare_error_get());
	printf("produce: all %llu frames were taken\n", (unsigned long long)count);
	tshare_tensor_unref(slots);
	tshare_region_unref(taken);
}

static void consume(const char *name)
{
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	struct tshare_region *region, *taken;
	struct tshare_tensor *slots;
	char buffer[TSHARE_NAME_MAX + 1];
	uint64_t n = 0;
	int error;

	/* The consumer only reads frames, and publishes the other region. */
	name_of_taken(name, buffer, sizeof(buffer));
	if (tshare_tensor_open(ctx, name, &readonly, &slots) < 0 ||
	    tshare_region_open(ctx, buffer, NULL, &taken) < 0)
		errx(1, "%s (start 'frames produce %s' first)", tshare_error_get(), name);
	region = tshare_tensor_get_region(slots);

	for (; !(error = wait_until(region, n + 1)); n++) {
		const int64_t *numbers = frame(slots, n);

		for (int i = 0; i < FRAME_LEN; i++)
			if (numbers[i] != (int64_t)n)
				errx(1, "frame %llu is damaged", (unsigned long long)n);
		if (tshare_region_publish(taken, NULL) < 0)
			errx(1, "%s", tshare_error_get());
	}
	if (error != -EOWNERDEAD)
		errx(1, "%s", tshare_error_get());
	printf("consume: took %llu frames, all of them whole; the producer has exited\n",
	       (unsigned long long)n);
	tshare_tensor_unref(slots);
	tshare_region_unref(taken);
}

int main(int argc, char **argv)
{
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "produce"))
		produce(argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : 1000);
	else if (argc == 3 && !strcmp(argv[1], "consume"))
		consume(argv[2]);
	else
		errx(2, "usage: frames produce NAME [COUNT] | frames consume NAME");
	tshare_ctx_unref(ctx);
	return 0;
}
