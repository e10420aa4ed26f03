/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_TEXT_H
#define TSHARE_CLI_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Bytes of the UTF-8 sequence that @text begins with, or 0: overlong forms,
 * surrogates and what is beyond U+10FFFF aren't UTF-8.
 */
int text_sequence(const unsigned char *text);

/* Whether a sequence is a control character, which a terminal may obey. */
bool text_is_control(const unsigned char *sequence);

/*
 * Writes text of any bytes; control characters, bytes that aren't UTF-8 and a backslash before an x
 * as \\xNN.
 */
void text_put(FILE *stream, const char *text);

/* Reads the first line of a file; false, and "", if there is none. */
bool text_read_line(const char *path, char *text, size_t size);

#endif /* TSHARE_CLI_TEXT_H */
