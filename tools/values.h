/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_VALUES_H
#define TSHARE_CLI_VALUES_H

#include <stdio.h>

#include <tshare.h>

/* Prints up to @count elements in C order; prints nothing for a type that C lacks. */
void print_values(FILE *stream, const struct tshare_tensor *tensor, uint64_t count);

#endif /* TSHARE_CLI_VALUES_H */
