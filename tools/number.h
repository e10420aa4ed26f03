/* SPDX-License-Identifier: MIT */
/* Numbers on the command line. */
#ifndef TSHARE_CLI_NUMBER_H
#define TSHARE_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a non-negative integer; stores where it ends in @end. */
bool parse_number(const char *text, int base, uint64_t *number, char **end);

/* Parses a number of bytes, which K, M, G or T may follow. */
bool parse_bytes(const char *text, uint64_t *bytes);

/*
 * Writes a number of bytes for people, rounded to a tenth of K, M, G or T: "7.1M".
 * @exact: with all its digits
 */
#define BYTES_LEN 24
void format_bytes(char text[BYTES_LEN], uint64_t bytes, bool exact);

/* Parses seconds, such as 0.5. */
bool parse_seconds(const char *text, int64_t *nanoseconds);

/* Parses the number of a NUMA node. */
bool parse_node(const char *text, int32_t *node);

#endif /* TSHARE_CLI_NUMBER_H */
