/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_FORMAT_COPY_H
#define TSHARE_FORMAT_COPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies the elements of one tensor to another of the same shape, which doesn't
 * overlap it. Strides count elements of @itemsize bytes; both pointers are to
 * element [0, 0, ...].
 */
void copy_elements(void *to, const int64_t *to_strides, const void *from,
		   const int64_t *from_strides, int32_t ndim, const int64_t *shape,
		   size_t itemsize);

#endif /* TSHARE_FORMAT_COPY_H */
