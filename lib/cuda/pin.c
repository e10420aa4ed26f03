// SPDX-License-Identifier: MIT
/* Pins: handles that keep a region's memory registered with CUDA. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "cuda/driver.h"
#include "cuda/options.h"
#include "cuda/registration.h"
#include "region/object.h"
#include "region/region.h"

struct tshare_pin {
	atomic_uint refs;
	struct tshare_region *region;
	struct tshare_pin_info info;
};

static int fail_registration(const struct tshare_region *region, int result, int device)
{
	if (result == -EOPNOTSUPP)
		return fail(result,
			    "region: is read-only, and CUDA device %d can't register "
			    "read-only memory",
			    device);
	if (cuda_errno(result) == -EBUSY)
		return fail(-EBUSY, "region: some of its memory has been registered by "
				    "another user of CUDA in this process");
	if (cuda_errno(result) == -ENOMEM)
		return fail(-ENOMEM,
			    "region: CUDA is out of memory, for the device's context or to "
			    "register %" PRIu64 " bytes",
			    region->handle.size);
	return cuda_fail(result, "region: CUDA can't register it");
}

static int pin_region(struct tshare_pin *pin, int device)
{
	struct tshare_region *region = pin->region;
	int result;

	registration_lock(region);
	result = registration_make(region, device, &pin->info.context_created);
	if (!result)
		region->registration.pins++;
	registration_unlock(region);
	if (result)
		return fail_registration(region, result, device);
	pin->info.piece_bytes = cuda_piece_bytes(region->handle.size);
	pin->info.device = device;
	pin->info.driver_version = cuda_driver_version();
	pin->info.readonly = region->readonly;
	return 0;
}

TSHARE_EXPORT
int tshare_region_pin(struct tshare_region *region, const struct tshare_cuda_options *options,
		      struct tshare_pin **pin)
{
	_cleanup_free_ struct tshare_pin *new = NULL;
	struct tshare_cuda_options known;
	int device, err;

	err = region_check_on_host(region);
	if (!err)
		err = cuda_options_read_device(options, &known);
	if (!err)
		err = cuda_options_choose_device(&known, &device);
	if (err)
		return err;
	new = malloc(sizeof(*new));
	if (!new)
		return fail(-ENOMEM, "pin: out of memory");
	*new = (struct tshare_pin){ .region = region };
	atomic_init(&new->refs, 1);
	err = pin_region(new, device);
	if (err)
		return err;
	tshare_region_ref(region);
	*pin = no_cleanup(new);
	return 0;
}

TSHARE_EXPORT
bool tshare_region_is_pinned(const struct tshare_region *region)
{
	return region->registration.pins && !cuda_is_forked();
}

TSHARE_EXPORT
struct tshare_pin *tshare_pin_ref(struct tshare_pin *pin)
{
	refcount_get(&pin->refs);
	return pin;
}

TSHARE_EXPORT
struct tshare_pin *tshare_pin_unref(struct tshare_pin *pin)
{
	keep_errno();

	if (!pin || !refcount_put(&pin->refs))
		return NULL;
	if (!cuda_is_forked())
		registration_unpin(pin->region);
	tshare_region_unref(pin->region);
	free(pin);
	return NULL;
}

TSHARE_EXPORT
struct tshare_region *tshare_pin_get_region(const struct tshare_pin *pin)
{
	return pin->region;
}

TSHARE_EXPORT
int tshare_pin_get_info(const struct tshare_pin *pin, struct tshare_pin_info *info)
{
	int err = sized_check(info, "info.", SIZED_UPTO(struct tshare_pin_info, readonly));

	if (!err)
		sized_fill(info, &pin->info, sizeof(pin->info));
	return err;
}
