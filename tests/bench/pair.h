/* SPDX-License-Identifier: MIT */
/*
 * Times two ways of doing the same thing in turn, A B A B ..., so that both
 * meet the same noise, and prints one row: medians in seconds, their ratio.
 */
#ifndef TSHARE_BENCH_PAIR_H
#define TSHARE_BENCH_PAIR_H

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double pair_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static inline int pair_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double pair_median(double *times, int rounds)
{
	qsort(times, rounds, sizeof(*times), pair_compare);
	return times[rounds / 2];
}

/**
 * pair_print() - print the row of two ways that were timed
 * @row: what is measured
 * @other: what it is measured against
 * @ours: seconds that it took, @rounds times; sorted here
 * @theirs: likewise
 * @rounds: how often each
 * @aim: the ratio aimed at, or 0 for none
 */
static inline void pair_print(const char *row, const char *other, double *ours, double *theirs,
			      int rounds, double aim)
{
	double a = pair_median(ours, rounds), b = pair_median(theirs, rounds);

	printf("%s\t%s\t%.9f\t%.9f\t%.3f\t", row, other, a, b, a / b);
	printf(aim ? "%.2f\n" : "-\n", aim);
	fflush(stdout);
}

/**
 * pair_run() - compare two ways and print the row
 * @row: what is measured
 * @other: what it is measured against
 * @ours: does it once; returns the seconds that count
 * @theirs: likewise
 * @rounds: how often each; a tenth as many, and at least one, go before, uncounted
 * @aim: the ratio aimed at, or 0 for none
 */
static inline void pair_run(const char *row, const char *other, double (*ours)(void),
			    double (*theirs)(void), int rounds, double aim)
{
	double *a = calloc(rounds, sizeof(*a)), *b = calloc(rounds, sizeof(*b));

	if (!a || !b)
		err(1, "calloc");
	for (int i = 0; i == 0 || i < rounds / 10; i++) {
		ours();
		theirs();
	}
	for (int i = 0; i < rounds; i++) {
		a[i] = ours();
		b[i] = theirs();
	}
	pair_print(row, other, a, b, rounds, aim);
	free(a);
	free(b);
}

#endif /* TSHARE_BENCH_PAIR_H */
