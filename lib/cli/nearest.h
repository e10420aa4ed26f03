/* SPDX-License-Identifier: MIT */
/* What a user may have meant who mistyped a word. */
#ifndef TSHARE_CLI_NEAREST_H
#define TSHARE_CLI_NEAREST_H

#define NEAREST_LEN 128

struct nearest {
	const char *word;
	unsigned int distance;	 /* of @found; candidates must be nearer */
	char found[NEAREST_LEN]; /* "" for none */
};

/* Words are near that differ by one letter; by three, if they are long. */
void nearest_init(struct nearest *nearest, const char *word);
void nearest_try(struct nearest *nearest, const char *candidate);

/* Prints to standard error what was found, if anything, with @prefix before it. */
void nearest_suggest(const struct nearest *nearest, const char *prefix);

#endif /* TSHARE_CLI_NEAREST_H */
