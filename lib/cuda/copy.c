// SPDX-License-Identifier: MIT
/*
 * Copies of tensors in a device's own memory, which a stream makes.
 *
 * The device reads the source until the stream reaches the event behind the copy. So the source
 * stays mapped, and registered if it is pinned, until the last unref. If the stream reaches the
 * event later, the reaper releases the source.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/process.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "cuda/driver.h"
#include "cuda/reaper.h"
#include "cuda/registration.h"
#include "cuda/scope.h"
#include "cuda/wait.h"
#include "format/strides.h"
#include "region/object.h"

/* How often the reaper checks whether an unreferenced copy has ended. */
#define LOOK_NS 1000000

struct tshare_cuda_copy {
	atomic_uint refs;
	struct tshare_tensor *tensor; /* the source */
	struct tshare_cuda_copy_info info;

	/* Unless the tensor is empty: */
	uint64_t memory; /* 0 for an empty one */
	uint64_t memory_id;
	struct CUevent_st *event; /* recorded behind the copy */
	bool retained;		  /* the copy retains the primary context */
	bool pinned;		  /* the copy pins the region */
	struct reaped reaped;
};

/* The bytes from the tensor's first element to its last, in the region. */
struct span {
	uint64_t offset;
	uint64_t size;
	uint64_t below; /* bytes before element [0, 0, ...] */
};

static struct span span_of(const struct tshare_tensor *tensor)
{
	struct extent extent;

	/* Can't fail: the tensor was checked when it was made. */
	(void)strides_extent(tshare_tensor_get_dtype(tensor), tshare_tensor_get_ndim(tensor),
			     tshare_tensor_get_shape(tensor), tshare_tensor_get_strides(tensor),
			     &extent);
	return (struct span){
		.offset = tshare_tensor_get_byte_offset(tensor) - extent.below,
		.size = extent.below + extent.above,
		.below = extent.below,
	};
}

/* Making one */

static int allocate(struct tshare_cuda_copy *copy, const struct span *span)
{
	int result = cuda_allocate(span->size, &copy->memory);

	if (cuda_errno(result) == -ENOMEM)
		return fail(-ENOMEM,
			    "copy: CUDA device %" PRId32 " has no %" PRIu64 " bytes of memory left",
			    copy->info.device, span->size);
	if (result)
		return cuda_fail(result, "copy: the device's memory");
	result = cuda_event_new(&copy->event);
	if (!result)
		return 0;
	cuda_free(copy->memory);
	return cuda_fail(result, "copy: its event");
}

/* After a failure waits for pieces of the copy that are on the stream already. */
static int fill(struct tshare_cuda_copy *copy, const struct span *span, struct CUstream_st *stream)
{
	struct tshare_region *region = tshare_tensor_get_region(copy->tensor);
	int result;

	result = cuda_stream_copy(stream, copy->memory, region->data, span->offset, span->size,
				  cuda_piece_bytes(region->handle.size));
	if (!result)
		result = cuda_event_record(copy->event, stream);
	if (!result)
		return 0;
	cuda_stream_finish(stream);
	cuda_event_free(copy->event);
	cuda_free(copy->memory);
	return cuda_fail(result, "copy");
}

static int start_reaper(void)
{
	int err;

	stream_watch_exit();
	process_lock();
	err = reaper_start();
	process_unlock();
	return err;
}

static int make_copy(struct tshare_cuda_copy *copy, const struct tshare_cuda_options *options,
		     struct CUstream_st *stream, const struct span *span)
{
	struct tshare_region *region = tshare_tensor_get_region(copy->tensor);
	struct cuda_scope scope;
	int err;

	err = stream_enter_to_make(&scope, options, stream);
	if (err)
		return err;
	copy->info.device = scope.device;
	copy->info.context_created = scope.created;
	err = start_reaper();
	if (!err)
		err = allocate(copy, span);
	if (!err) {
		copy->memory_id = cuda_memory_id(copy->memory);
		copy->info.address = copy->memory + span->below;
		copy->info.memory_bytes = span->size;
		copy->pinned = registration_pin_again(region);
		err = fill(copy, span, stream);
		if (!err)
			copy->retained = cuda_keep_context(&scope);
		else if (copy->pinned)
			registration_unpin(region);
	}
	cuda_leave(&scope);
	return err;
}

/* For an empty tensor, which needs no context: checks the same, and finds the device. */
static int find_device(const struct tshare_cuda_options *options, struct CUstream_st *stream,
		       int32_t *device)
{
	struct tshare_cuda_options known;
	struct cuda_scope scope;
	int err;

	if (cuda_stream_is_default(stream))
		return stream_read(options, stream, &known, device);
	err = stream_enter(&scope, options, stream);
	if (err)
		return err;
	*device = scope.device;
	cuda_leave(&scope);
	return 0;
}

TSHARE_EXPORT
int tshare_cuda_copy_new(struct tshare_tensor *tensor, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream, struct tshare_cuda_copy **copy)
{
	_cleanup_free_ struct tshare_cuda_copy *new = malloc(sizeof(*new));
	const struct span span = span_of(tensor);
	int err;

	if (!new)
		return fail(-ENOMEM, "copy: out of memory");
	if (region_is_on_device(tshare_tensor_get_region(tensor)))
		return fail(-EOPNOTSUPP, "tensor: its memory is on a device already");
	*new = (struct tshare_cuda_copy){ .tensor = tensor };
	atomic_init(&new->refs, 1);
	err = span.size ? make_copy(new, options, stream, &span) :
			  find_device(options, stream, &new->info.device);
	if (err)
		return err;
	new->info.driver_version = cuda_driver_version();
	tshare_tensor_ref(tensor);
	*copy = no_cleanup(new);
	return 0;
}

/* Using one */

TSHARE_EXPORT
struct tshare_tensor *tshare_cuda_copy_get_tensor(const struct tshare_cuda_copy *copy)
{
	return copy->tensor;
}

TSHARE_EXPORT
int tshare_cuda_copy_get_info(const struct tshare_cuda_copy *copy,
			      struct tshare_cuda_copy_info *info)
{
	int err = sized_check(info, "info.",
			      SIZED_UPTO(struct tshare_cuda_copy_info, context_created));

	if (!err)
		sized_fill(info, &copy->info, sizeof(copy->info));
	return err;
}

/* A reset of the device, or the end of the caller's context, ends a copy. */
static bool is_valid(const struct tshare_cuda_copy *copy)
{
	return cuda_memory_is(copy->memory, copy->memory_id);
}

TSHARE_EXPORT
int tshare_cuda_copy_wait_on(const struct tshare_cuda_copy *copy, struct CUstream_st *stream)
{
	const struct tshare_cuda_options own = {
		.size = sizeof(own),
		.flags = TSHARE_CUDA_DEVICE,
		.device = copy->info.device,
	};
	/* Any other stream has a device of its own, maybe not the copy's. */
	const struct tshare_cuda_options *options = cuda_stream_is_default(stream) ? &own : NULL;
	struct cuda_scope scope;
	int32_t device;
	int err;

	if (!copy->memory)
		return find_device(options, stream, &device);
	err = stream_enter(&scope, options, stream);
	if (err)
		return err;
	if (is_valid(copy)) {
		err = cuda_stream_wait_event(stream, copy->event);
		if (err)
			err = cuda_fail(err, "stream");
	} else {
		err = fail(-EIO, "copy: has gone with the context that it was made in");
	}
	cuda_leave(&scope);
	return err;
}

/* Ends */

TSHARE_EXPORT
struct tshare_cuda_copy *tshare_cuda_copy_ref(struct tshare_cuda_copy *copy)
{
	refcount_get(&copy->refs);
	return copy;
}

/* Frees the copy; false if the stream hasn't made it yet. */
static bool undo(const struct tshare_cuda_copy *copy)
{
	struct cuda_scope scope;
	bool over = true;

	if (is_valid(copy)) {
		if (!cuda_enter_memory(&scope, copy->memory) ||
		    !cuda_enter_to_undo(&scope, copy->info.device)) {
			over = cuda_event_is_over(copy->event);
			if (over) {
				cuda_event_free(copy->event);
				cuda_free(copy->memory);
			}
			cuda_leave(&scope);
		}
		if (over && copy->retained)
			cuda_release(copy->info.device);
	}
	if (over && copy->pinned)
		registration_unpin(tshare_tensor_get_region(copy->tensor));
	return over;
}

static void add_to_reaper(struct tshare_cuda_copy *copy)
{
	process_lock();
	reaper_add(&copy->reaped);
	process_unlock();
}

static void free_copy(struct tshare_cuda_copy *copy)
{
	tshare_tensor_unref(copy->tensor);
	free(copy);
}

/* Retries until the copy is made. The reaper drops other objects in between. */
static void drop_copy(struct reaped *reaped)
{
	struct tshare_cuda_copy *copy = container_of(reaped, struct tshare_cuda_copy, reaped);
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	if (undo(copy)) {
		free_copy(copy);
	} else {
		nanosleep(&pause, NULL);
		add_to_reaper(copy);
	}
}

TSHARE_EXPORT
struct tshare_cuda_copy *tshare_cuda_copy_unref(struct tshare_cuda_copy *copy)
{
	keep_errno();

	if (!copy || !refcount_put(&copy->refs))
		return NULL;
	/* In a child of fork() it is the parent's. */
	if (!copy->memory || cuda_is_forked() || undo(copy)) {
		free_copy(copy);
	} else {
		copy->reaped.drop = drop_copy;
		add_to_reaper(copy);
	}
	return NULL;
}
