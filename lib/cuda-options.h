/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CUDA_OPTIONS_H
#define TSHARE_CUDA_OPTIONS_H

#include "tshare.h"

/* Copies what the caller gave, or the defaults if it is NULL, and checks it. */
int cuda_options_read(const struct tshare_cuda_options *options, struct tshare_cuda_options *known);

/* The same for calls that take no path: -EINVAL if there is one. */
int cuda_options_read_device(const struct tshare_cuda_options *options,
			     struct tshare_cuda_options *known);

/* Starts the driver, and chooses the device that they name. */
int cuda_options_choose_device(const struct tshare_cuda_options *options, int *device);

#endif /* TSHARE_CUDA_OPTIONS_H */
