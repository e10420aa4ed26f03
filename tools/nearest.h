/* SPDX-License-Identifier: MIT */
/* Finds the word that a mistyped word may stand for. */
#ifndef TSHARE_CLI_NEAREST_H
#define TSHARE_CLI_NEAREST_H

#define NEAREST_LEN 128

struct nearest {
	const char *word;
	unsigned int distance;	 /* of @found; candidates must be nearer */
	char found[NEAREST_LEN]; /* "" for none */
};

/* Near words differ by one letter; long ones, by up to three. */
void nearest_init(struct nearest *nearest, const char *word);
void nearest_try(struct nearest *nearest, const char *candidate);

/* Prints the word that was found, if any, to standard error, after @prefix. */
void nearest_suggest(const struct nearest *nearest, const char *prefix);

#endif /* TSHARE_CLI_NEAREST_H */
