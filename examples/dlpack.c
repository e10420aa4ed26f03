// SPDX-License-Identifier: MIT
/*
 * Exchanges tensors with a library that uses DLPack and not tshare: passes a
 * tensor of a region to a consumer, then a producer's tensors into a region.
 *
 *	cc dlpack.c $(pkg-config --cflags --libs tshare) -o dlpack && ./dlpack
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <tshare-dlpack.h>
#include <tshare.h>

/* The other library */

/*
 * Prints the elements of an int32 matrix, or adds to each of them. Calls the
 * tensor's deleter at the end, as every consumer must.
 */
static void consume(DLManagedTensorVersioned *managed, int add)
{
	const DLTensor *t = &managed->dl_tensor;
	int32_t *first = (int32_t *)((char *)t->data + t->byte_offset);

	/* In another major version only the deleter is where it is here. */
	if (managed->version.major != DLPACK_MAJOR_VERSION)
		errx(1, "an unknown version of DLPack");
	if (t->device.device_type != kDLCPU || t->ndim != 2 || t->dtype.code != kDLInt ||
	    t->dtype.bits != 32 || t->dtype.lanes != 1)
		errx(1, "not an int32 matrix on the CPU");
	if (add && managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
		errx(1, "it is read-only");

	printf("  a consumer sees %d x %d, strides %d and %d:", (int)t->shape[0], (int)t->shape[1],
	       (int)t->strides[0], (int)t->strides[1]);
	for (int64_t i = 0; i < t->shape[0]; i++)
		for (int64_t j = 0; j < t->shape[1]; j++) {
			/* Strides count elements, not bytes. */
			int32_t *element = first + i * t->strides[0] + j * t->strides[1];

			printf(" %d", (int)*element);
			*element += add;
		}
	printf("\n");
	if (managed->deleter)
		managed->deleter(managed);
}

/* The producer's matrix, 2 x 3, which it exports transposed: 3 x 2. */
struct matrix {
	DLManagedTensorVersioned managed;
	int64_t shape[2], strides[2];
	int32_t elements[6];
};

static int deletions;

static void delete_matrix(DLManagedTensorVersioned *managed)
{
	deletions++;
	free(managed->manager_ctx);
}

static DLManagedTensorVersioned *produce(void)
{
	struct matrix *matrix = malloc(sizeof(*matrix));

	if (!matrix)
		err(1, NULL);
	*matrix = (struct matrix){
		.shape = { 3, 2 },
		.strides = { 1, 3 },
		.elements = { 1, 2, 3, 4, 5, 6 },
	};
	matrix->managed = (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
		.manager_ctx = matrix,
		.deleter = delete_matrix,
		.dl_tensor = {
			.data = matrix->elements,
			.device = { kDLCPU, 0 },
			.ndim = 2,
			.dtype = { kDLInt, 32, 1 },
			.shape = matrix->shape,
			.strides = matrix->strides,
		},
	};
	return &matrix->managed;
}

/* The program that uses both libraries */

static void show(const struct tshare_tensor *tensor)
{
	const int64_t *shape = tshare_tensor_get_shape(tensor);
	const int32_t *elements = tshare_tensor_get_data(tensor);

	printf("  the region holds:");
	for (int64_t i = 0; i < shape[0] * shape[1]; i++)
		printf(" %d", (int)elements[i]);
	printf("\n");
}

static DLManagedTensorVersioned *export(struct tshare_tensor *tensor)
{
	DLManagedTensorVersioned *managed;

	if (tshare_tensor_to_dlpack(tensor, &managed) < 0)
		errx(1, "%s", tshare_error_get());
	return managed;
}

static void to_others(struct tshare_ctx *ctx)
{
	const int64_t shape[] = { 2, 3 };
	struct tshare_tensor *tensor;
	DLManagedTensorVersioned *managed;
	int32_t *elements;

	printf("A tensor of a region, for a consumer:\n");
	if (tshare_tensor_create(ctx, NULL, TSHARE_INT32, 2, shape, NULL, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	elements = tshare_tensor_get_data(tensor);
	for (int i = 0; i < 6; i++)
		elements[i] = i + 1;

	/* The consumer changes the region itself: there is no copy. */
	consume(export(tensor), 10);
	show(tensor);

	/* An export holds a reference to the memory until its deleter is called. */
	managed = export(tensor);
	tshare_tensor_unref(tensor);
	consume(managed, 0);
}

static void from_others(struct tshare_ctx *ctx)
{
	struct tshare_tensor *tensor, *again;
	DLManagedTensorVersioned *managed = produce();
	bool same;

	/* Memory outside of a region is copied, in C order; the caller still owns it. */
	printf("A producer's tensor, transposed, into a region:\n");
	if (tshare_tensor_from_dlpack(ctx, NULL, managed, NULL, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	managed->deleter(managed);
	printf("  the producer's deleter ran %d time%s\n", deletions, deletions == 1 ? "" : "s");
	show(tensor);

	/* Memory in a region is not copied. */
	printf("The same, which is in a region now, once more:\n");
	managed = export(tensor);
	if (tshare_tensor_from_dlpack(ctx, NULL, managed, NULL, &again) < 0)
		errx(1, "%s", tshare_error_get());
	managed->deleter(managed);
	same = tshare_tensor_get_data(again) == tshare_tensor_get_data(tensor);
	printf("  %s\n", same ? "the same memory: nothing was copied" : "a copy");
	tshare_tensor_unref(again);
	tshare_tensor_unref(tensor);
}

int main(void)
{
	struct tshare_ctx *ctx;

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	to_others(ctx);
	from_others(ctx);
	tshare_ctx_unref(ctx);
	return 0;
}
