/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CUDA_OPTIONS_H
#define TSHARE_CUDA_OPTIONS_H

#include "tshare.h"

/* Copies and checks the caller's options, or the defaults for NULL. */
int cuda_options_read(const struct tshare_cuda_options *options, struct tshare_cuda_options *known);

/* The same for calls that take no path: -EINVAL if one is set. */
int cuda_options_read_device(const struct tshare_cuda_options *options,
			     struct tshare_cuda_options *known);

/* Starts the driver, and chooses the device that the options name. */
int cuda_options_choose_device(const struct tshare_cuda_options *options, int *device);

#endif /* TSHARE_CUDA_OPTIONS_H */
