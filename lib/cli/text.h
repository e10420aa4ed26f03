/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_TEXT_H
#define TSHARE_CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Bytes of the UTF-8 sequence that @text begins with, or 0: overlong forms,
 * surrogates and what is beyond U+10FFFF aren't UTF-8.
 */
int text_sequence(const unsigned char *text);

/* Whether a sequence is a control character, which a terminal may obey. */
bool text_is_control(const unsigned char *sequence);

/*
 * The character at @at in @text, if text with it may look like other text: it reorders what is
 * around it or isn't seen. 0 for all others, and for joiners behind a character beyond ASCII that is
 * written as it is, as emoji and some scripts need them there.
 */
uint32_t text_hidden(const char *text, const unsigned char *at);

/*
 * Writes text of any bytes; control characters, bytes that aren't UTF-8 and a backslash before an x
 * as \\xNN, hidden characters and a backslash before a u as \\uNNNN or \\UNNNNNNNN.
 */
void text_put(FILE *stream, const char *text);

/* A copy with the escapes of the second kind alone, or NULL. */
char *text_reveal(const char *text);

/*
 * A copy, or NULL, of a text of text_reveal(), which takes up to @width columns of a terminal when
 * libsmartcols prints it. "..." replaces the middle of a longer one, as names differ at their ends;
 * it stays whole if there is no room for more than that.
 */
char *text_shorten(const char *text, size_t width);

/* Reads the first line of a file; false, and "", if there is none. */
bool text_read_line(const char *path, char *text, size_t size);

#endif /* TSHARE_CLI_TEXT_H */
