/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_TEXT_H
#define TSHARE_CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Bytes of the UTF-8 sequence at the start of @text, or 0 if it isn't UTF-8: overlong forms,
 * surrogates, and anything beyond U+10FFFF.
 */
int text_sequence(const unsigned char *text);

/* Whether a sequence is a control character, which a terminal may obey. */
bool text_is_control(const unsigned char *sequence);

/*
 * The character at @at in @text, if it can disguise the text: it is invisible, or reorders what is
 * around it. 0 for all other characters. 0 also for a joiner after a non-ASCII character that isn't
 * escaped, where emoji and some scripts need it.
 */
uint32_t text_hidden(const char *text, const unsigned char *at);

/*
 * Writes text of any bytes. \\xNN replaces control characters, bytes that aren't UTF-8, and a
 * backslash before an x; \\uNNNN or \\UNNNNNNNN hidden characters, and a backslash before a u.
 */
void text_put(FILE *stream, const char *text);

/* A copy with the \\u and \\U escapes alone, or NULL. */
char *text_reveal(const char *text);

/*
 * A copy, or NULL, of text_reveal()'s text, of up to @width columns as libsmartcols prints it.
 * "..." replaces the middle of a longer text, as names differ at their ends. If there is room for
 * no more than the dots, the text stays whole.
 */
char *text_shorten(const char *text, size_t width);

/* Reads the first line of a file; false, and "", if there is none. */
bool text_read_line(const char *path, char *text, size_t size);

#endif /* TSHARE_CLI_TEXT_H */
