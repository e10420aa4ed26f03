// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "nearest.h"
#include "text.h"

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * Letters to insert, remove, replace or swap with the next one to turn @a into @b, both shorter
 * than NEAREST_LEN.
 */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int rows[3][NEAREST_LEN], *before = rows[0], *above = rows[1], *row = rows[2],
					   *swap;
	size_t i, j, width = strlen(b);

	for (j = 0; j <= width; j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		swap = before;
		before = above;
		above = row;
		row = swap;
		row[0] = i;
		for (j = 1; j <= width; j++) {
			row[j] = least(least(above[j], row[j - 1]) + 1,
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return row[width];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	size_t length = strlen(word);

	nearest->word = word;
	nearest->found[0] = '\0';
	if (!length || length >= NEAREST_LEN)
		nearest->distance = 0;
	else
		nearest->distance = 1 + (length < 6 ? 1 : length < 9 ? 2 : 3);
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
	unsigned int distance;

	if (!nearest->distance || strlen(candidate) >= NEAREST_LEN)
		return;
	distance = edit_distance(nearest->word, candidate);
	if (distance >= nearest->distance || distance >= strlen(candidate))
		return;
	nearest->distance = distance;
	strcpy(nearest->found, candidate);
}

void nearest_suggest(const struct nearest *nearest, const char *prefix)
{
	if (!nearest->found[0])
		return;
	fprintf(stderr, "Did you mean '%s", prefix);
	text_put(stderr, nearest->found);
	fputs("'?\n", stderr);
}
