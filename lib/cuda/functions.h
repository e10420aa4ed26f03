/* SPDX-License-Identifier: MIT */
/* The driver's functions: load.c finds them; driver.c and driver-ipc.c call them. */
#ifndef TSHARE_CUDA_FUNCTIONS_H
#define TSHARE_CUDA_FUNCTIONS_H

#include <stddef.h>

#include "cuda/abi.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): it is a declaration */
#define MEMBER(name, symbol, since, parameters) CUresult(*name) parameters;

/* Written by cuda_start() before it returns 0 for the first time, and never again. */
extern struct libcuda {
	int version;
	CUDA_FUNCTIONS(MEMBER)
	CUDA_NEWER_FUNCTIONS(MEMBER)
} libcuda;

#endif /* TSHARE_CUDA_FUNCTIONS_H */
