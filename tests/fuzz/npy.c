// SPDX-License-Identifier: MIT
/*
 * The dict of a .npy file: whatever its bytes are, it is refused with a reason, or describes an
 * array, and the header that the command writes of that describes the same one.
 */
#include <stdlib.h>
#include <string.h>

#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX_LEN (NPY_MAGIC_LEN + 2)

static void expect(bool law)
{
	if (!law)
		abort();
}

static void check_again(const struct npy *npy)
{
	char header[NPY_HEADER_MAX];
	struct npy again;
	const char *problem;
	size_t length;

	length = npy_format(header, npy);
	expect(length && length <= sizeof(header) && !(length % 64));
	expect(npy_check_magic((const unsigned char *)header, &problem) == 2);
	expect(npy_parse(header + PREFIX_LEN, length - PREFIX_LEN, &again, &problem));
	expect(again.dtype.code == npy->dtype.code && again.dtype.bits == npy->dtype.bits);
	expect(again.fortran_order == npy->fortran_order && again.ndim == npy->ndim);
	expect(!memcmp(again.shape, npy->shape, npy->ndim * sizeof(*npy->shape)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *problem = NULL;
	struct npy npy;
	int32_t i;

	if (!npy_parse((const char *)data, size, &npy, &problem)) {
		expect(problem);
		return 0;
	}
	expect(npy.ndim >= 0 && npy.ndim <= TSHARE_NDIM_LIMIT && npy.dtype.lanes == 1);
	for (i = 0; i < npy.ndim; i++)
		expect(npy.shape[i] >= 0);
	check_again(&npy);
	return 0;
}
