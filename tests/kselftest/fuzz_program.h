/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzer runs: a program is a list of calls, a call an operation and six numbers.
 *
 * The numbers are not the call's arguments. An operation makes its arguments of them when it
 * runs, for example takes a number modulo the open descriptors. So each number is valid, and a
 * program that has been cut or spliced still uses the descriptors that it has.
 */
#ifndef TSHARE_KSELFTEST_FUZZ_PROGRAM_H
#define TSHARE_KSELFTEST_FUZZ_PROGRAM_H

#include "fuzz_calls.h"

#define FUZZ_CALLS   40
#define FUZZ_THREADS 3
/* The longest text of a program: a line for each call. */
#define FUZZ_TEXT    4096

struct fuzz_program {
	__u32 count;
	struct fuzz_call calls[FUZZ_CALLS];
};

/* Numbers that depend on the seed alone: splitmix64. */
struct fuzz_random {
	__u64 state;
};

static inline __u32 fuzz_number(struct fuzz_random *random)
{
	__u64 z = random->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

static inline __u32 fuzz_below(struct fuzz_random *random, __u32 limit)
{
	return fuzz_number(random) % limit;
}

static inline bool fuzz_one_in(struct fuzz_random *random, __u32 n)
{
	return !fuzz_below(random, n);
}

static inline __u8 fuzz_random_op(struct fuzz_random *random)
{
	__u32 left, total = 0, i;
	__u8 op = 0;

	for (i = 0; i < ARRAY_SIZE(fuzz_ops); i++)
		total += fuzz_ops[i].weight;
	left = fuzz_below(random, total);
	while (left >= fuzz_ops[op].weight)
		left -= fuzz_ops[op++].weight;
	return op;
}

static inline struct fuzz_call fuzz_random_call(struct fuzz_random *random, __u8 op)
{
	struct fuzz_call call = { .op = op };
	__u32 i;

	for (i = 0; i < FUZZ_ARGS; i++)
		call.arg[i] = fuzz_number(random);
	if (fuzz_one_in(random, 12))
		call.fail = 1 + fuzz_below(random, 20);
	return call;
}

static inline void fuzz_random_program(struct fuzz_random *random, struct fuzz_program *program)
{
	/* Most programs have one thread, or none could be trimmed. */
	__u32 threads = fuzz_one_in(random, 4) ? FUZZ_THREADS : 1, i;

	program->count = 8 + fuzz_below(random, FUZZ_CALLS - 8);
	for (i = 0; i < program->count; i++) {
		program->calls[i] = fuzz_random_call(random, fuzz_random_op(random));
		program->calls[i].thread = fuzz_below(random, threads);
	}
}

static inline void fuzz_remove_call(struct fuzz_program *program, __u32 at)
{
	program->count--;
	memmove(program->calls + at, program->calls + at + 1,
		(program->count - at) * sizeof(program->calls[0]));
}

static inline void fuzz_insert_call(struct fuzz_program *program, __u32 at, struct fuzz_call call)
{
	if (program->count == FUZZ_CALLS)
		fuzz_remove_call(program, FUZZ_CALLS - 1);
	if (at > program->count)
		at = program->count;
	memmove(program->calls + at + 1, program->calls + at,
		(program->count - at) * sizeof(program->calls[0]));
	program->calls[at] = call;
	program->count++;
}

static inline void fuzz_mutate_call(struct fuzz_random *random, struct fuzz_call *call)
{
	__u32 *arg = &call->arg[fuzz_below(random, FUZZ_ARGS)];

	switch (fuzz_below(random, 6)) {
	case 0:
		*arg = fuzz_number(random);
		break;
	case 1:
		*arg ^= 1U << fuzz_below(random, 32);
		break;
	case 2:
		*arg += fuzz_below(random, 9) - 4;
		break;
	case 3:
		call->thread = fuzz_below(random, FUZZ_THREADS);
		break;
	case 4:
		call->fail = fuzz_one_in(random, 2) ? 0 : 1 + fuzz_below(random, 40);
		break;
	default:
		*arg = fuzz_below(random, 4);
	}
}

/* Changes @program; @other is one to take calls of. */
static inline void fuzz_mutate(struct fuzz_random *random, struct fuzz_program *program,
			       const struct fuzz_program *other)
{
	int times = 1 + fuzz_below(random, 4);
	__u32 at, from;

	while (times--) {
		at = fuzz_below(random, program->count);
		switch (fuzz_below(random, 10)) {
		case 0:
			if (program->count > 1)
				fuzz_remove_call(program, at);
			break;
		case 1:
			fuzz_insert_call(program, at, program->calls[at]);
			break;
		case 2:
			fuzz_insert_call(program, at,
					 fuzz_random_call(random, fuzz_random_op(random)));
			break;
		case 3:
		case 4:
			fuzz_insert_call(program, at, fuzz_random_call(random, FUZZ_REPEAT));
			break;
		case 5:
			for (from = fuzz_below(random, other->count); from < other->count; from++)
				fuzz_insert_call(program, at++, other->calls[from]);
			break;
		default:
			fuzz_mutate_call(random, &program->calls[at]);
		}
	}
}

/* Text: each line is an operation, a thread, the allocation to fail, and the numbers. */

static inline int fuzz_write_text(const struct fuzz_program *program, char *text)
{
	const struct fuzz_call *call;
	int len = 0;

	for (call = program->calls; call < program->calls + program->count; call++)
		len += sprintf(text + len, "%s %u %u %x %x %x %x %x %x\n", fuzz_ops[call->op].name,
			       call->thread, call->fail, call->arg[0], call->arg[1], call->arg[2],
			       call->arg[3], call->arg[4], call->arg[5]);
	return len;
}

static inline bool fuzz_read_call(const char *line, struct fuzz_call *call)
{
	unsigned int thread, fail;
	char name[16];

	if (sscanf(line, "%15s %u %u %x %x %x %x %x %x", name, &thread, &fail, &call->arg[0],
		   &call->arg[1], &call->arg[2], &call->arg[3], &call->arg[4], &call->arg[5]) != 9)
		return false;
	call->thread = thread % FUZZ_THREADS;
	call->fail = fail;
	for (call->op = 0; call->op < ARRAY_SIZE(fuzz_ops); call->op++)
		if (!strcmp(name, fuzz_ops[call->op].name))
			return true;
	return false;
}

/* Of a file; whatever stands behind the program is ignored. */
static inline bool fuzz_read_text(const char *path, struct fuzz_program *program)
{
	FILE *file = fopen(path, "re");
	char line[128];

	program->count = 0;
	if (!file)
		return false;
	while (program->count < FUZZ_CALLS && fgets(line, sizeof(line), file) &&
	       fuzz_read_call(line, &program->calls[program->count]))
		program->count++;
	fclose(file);
	return program->count;
}

#endif /* TSHARE_KSELFTEST_FUZZ_PROGRAM_H */
