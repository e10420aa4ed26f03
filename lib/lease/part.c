// SPDX-License-Identifier: MIT
#include "lease/part.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "lease/ring.h"

void part_spec(const struct part *part, struct tshare_spec *spec)
{
	*spec = (struct tshare_spec){
		.size = sizeof(*spec),
		.name = part->name,
		.dtype = part->dtype,
		.ndim = part->ndim,
		.shape = part->shape,
	};
}

int part_fail_none(struct tshare_region *region, const char *kind)
{
	return fail(-EPROTO, "name: '%s' is no %s, or one of another version of tshare",
		    tshare_region_get_name(region), kind);
}

int part_find(struct tshare_region *region, const char *kind, const struct part *part, void *at)
{
	struct tshare_tensor *tensor;
	struct tshare_dtype dtype;
	bool same;
	int err;

	err = tshare_region_find_tensor(region, part->name, &tensor);
	if (err == -ENOENT)
		return part_fail_none(region, kind);
	if (err)
		return err;
	dtype = tshare_tensor_get_dtype(tensor);
	same = !memcmp(&dtype, &part->dtype, sizeof(dtype)) &&
	       tshare_tensor_get_ndim(tensor) == part->ndim &&
	       !memcmp(tshare_tensor_get_shape(tensor), part->shape,
		       part->ndim * sizeof(*part->shape)) &&
	       tshare_tensor_is_contiguous(tensor) &&
	       tshare_tensor_get_byte_offset(tensor) % _Alignof(struct ring_line) == 0;
	*(void **)at = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	if (!same)
		return fail(-EPROTO, "name: '%s' has a tensor '%s' that no %s has",
			    tshare_region_get_name(region), part->name, kind);
	return 0;
}
