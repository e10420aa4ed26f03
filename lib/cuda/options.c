// SPDX-License-Identifier: MIT
/* The options of CUDA calls: the device, and its path to the memory. */
#include "cuda/options.h"

#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/sized.h"
#include "cuda/driver.h"

static int check_options(const struct tshare_cuda_options *options)
{
	if (options->flags & ~TSHARE_CUDA_DEVICE)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, options->flags);
	if (options->device && !(options->flags & TSHARE_CUDA_DEVICE))
		return fail(-EINVAL,
			    "options.device: %" PRId32 " is ignored without "
			    "TSHARE_CUDA_DEVICE; set the flag, or 0",
			    options->device);
	if (options->path >= TSHARE_CUDA_PATHS)
		return fail(-EINVAL, "options.path: %" PRIu32 " is unknown", options->path);
	if (options->reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	return 0;
}

int cuda_options_read(const struct tshare_cuda_options *options, struct tshare_cuda_options *known)
{
	int err;

	*known = (struct tshare_cuda_options){ 0 };
	if (!options)
		return 0;
	err = sized_read(options, "options.", SIZED_UPTO(struct tshare_cuda_options, path), known,
			 sizeof(*known));
	return err ? err : check_options(known);
}

int cuda_options_read_device(const struct tshare_cuda_options *options,
			     struct tshare_cuda_options *known)
{
	int err = cuda_options_read(options, known);

	if (!err && known->path)
		err = fail(-EINVAL, "options.path: is for tshare_cuda_import(); set it to 0");
	return err;
}

int cuda_options_choose_device(const struct tshare_cuda_options *options, int *device)
{
	int count, result, err;

	err = cuda_start();
	if (err)
		return err;
	if (!(options->flags & TSHARE_CUDA_DEVICE)) {
		*device = cuda_current_device();
		return 0;
	}
	result = cuda_count_devices(&count);
	if (result)
		return cuda_fail(result, "options.device");
	if (options->device < 0 || options->device >= count)
		return fail(-EINVAL, "options.device: there is no device %" PRId32 " of %d",
			    options->device, count);
	*device = options->device;
	return 0;
}
