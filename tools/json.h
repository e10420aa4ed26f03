/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to standard output. @key is NULL in an array and at the top.
 */
#ifndef TSHARE_CLI_JSON_H
#define TSHARE_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* @bracket: '{' or '[' */
void json_open(const char *key, char bracket);
void json_close(char bracket);

/* Bytes that aren't UTF-8 become lone surrogates U+DC80 to U+DCFF, Python's surrogateescape. */
void json_string(const char *key, const char *value);
void json_uint(const char *key, uint64_t value);
void json_int(const char *key, int64_t value);
void json_double(const char *key, double value); /* finite */
void json_bool(const char *key, bool value);
void json_null(const char *key);

#endif /* TSHARE_CLI_JSON_H */
