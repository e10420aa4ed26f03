// SPDX-License-Identifier: MIT
#include "cuda/scope.h"

#include <errno.h>

#include "base/error.h"
#include "cuda/options.h"

static int check_stream(const struct CUstream_st *stream)
{
	if (stream)
		return 0;
	return fail(-EINVAL, "stream: NULL may be the legacy default stream or the thread's; "
			     "use CU_STREAM_LEGACY or CU_STREAM_PER_THREAD");
}

static int check_capture(struct CUstream_st *stream)
{
	bool capturing;
	int result = cuda_stream_is_capturing(stream, &capturing);

	if (result)
		return cuda_fail(result, "stream");
	if (capturing)
		return fail(-EOPNOTSUPP,
			    "stream: is being captured into a graph, which would run it "
			    "never, or more than once");
	return 0;
}

/* Only a default stream can be of any device. */
static int check_device(const struct tshare_cuda_options *options, const struct cuda_scope *scope)
{
	if (!(options->flags & TSHARE_CUDA_DEVICE) || options->device == scope->device)
		return 0;
	return fail(-EINVAL, "options.device: the stream is of device %d, not %d", scope->device,
		    (int)options->device);
}

int stream_read(const struct tshare_cuda_options *options, const struct CUstream_st *stream,
		struct tshare_cuda_options *known, int *device)
{
	int err = check_stream(stream);

	if (!err)
		err = cuda_options_read_device(options, known);
	return err ? err : cuda_options_choose_device(known, device);
}

static int enter(struct cuda_scope *scope, const struct tshare_cuda_options *options,
		 struct CUstream_st *stream, bool create)
{
	struct tshare_cuda_options known;
	int device, err;

	err = stream_read(options, stream, &known, &device);
	if (err)
		return err;
	if (create && cuda_stream_is_default(stream))
		err = cuda_enter(scope, device);
	else
		err = cuda_enter_stream(scope, stream, device);
	if (err == -ENOENT)
		return fail(-EINVAL, "stream: device %d has no context, and so no streams", device);
	if (err)
		return cuda_fail(err, "stream");
	err = check_device(&known, scope);
	if (!err)
		err = check_capture(stream);
	if (err)
		cuda_leave(scope);
	return err;
}

int stream_enter(struct cuda_scope *scope, const struct tshare_cuda_options *options,
		 struct CUstream_st *stream)
{
	return enter(scope, options, stream, false);
}

int stream_enter_to_make(struct cuda_scope *scope, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream)
{
	int err = enter(scope, options, stream, true);

	if (!err)
		cuda_retain_context(scope);
	return err;
}
