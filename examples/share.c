// SPDX-License-Identifier: MIT
/*
 * Shares the int32 array 1 2 3 by name, waits for Enter, and prints what other
 * processes have made of it.
 *
 *	cc share.c $(pkg-config --cflags --libs tshare) -o share && ./share numbers
 */
#include <err.h>
#include <stdio.h>

#include <tshare.h>

static void show(const char *when, const int32_t *numbers, int64_t count)
{
	printf("C: %s:", when);
	for (int64_t i = 0; i < count; i++)
		printf(" %d", (int)numbers[i]);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "numbers";
	const int64_t shape[] = { 3 };
	struct tshare_tensor *tensor;
	struct tshare_ctx *ctx;
	int32_t *numbers;

	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_tensor_create(ctx, name, TSHARE_INT32, 1, shape, NULL, &tensor) < 0)
		errx(1, "%s", tshare_error_get());

	numbers = tshare_tensor_get_data(tensor);
	for (int i = 0; i < 3; i++)
		numbers[i] = i + 1;
	printf("C: created '%s', int32, shape [3], on the %s backend\n", name,
	       tshare_ctx_get_backend(ctx));
	show("it holds", numbers, shape[0]);

	printf("C: waiting for Enter\n");
	fflush(stdout);
	getchar();
	show("now it holds", numbers, shape[0]);

	tshare_tensor_unref(tensor);
	tshare_ctx_unref(ctx);
	return 0;
}
