/* SPDX-License-Identifier: MIT */
/* Starting the driver, and its results: see driver.h. */
#ifndef TSHARE_CUDA_LOAD_H
#define TSHARE_CUDA_LOAD_H

#include <stdbool.h>

/*
 * Loads and initialises the driver, once. 0, or -EOPNOTSUPP with a text of what is missing;
 * the next call then tries again.
 */
int cuda_start(void);

bool cuda_is_forked(void);

/* As cuDriverGetVersion() stores it. */
int cuda_driver_version(void);

/* A result's errno, and its name or text. A result may be a negative errno already. */
int cuda_errno(int result);
const char *cuda_result_name(int result);

/* Stores "@what: <name of the result>" as the error, and returns its errno. */
int cuda_fail(int result, const char *what);

#endif /* TSHARE_CUDA_LOAD_H */
