/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts the module's tries to take a stretch of memory, where the kernel has kprobes. */
#ifndef TSHARE_KSELFTEST_PROBE_H
#define TSHARE_KSELFTEST_PROBE_H

#include "tracing.h"
#include "util.h"

#define PROBE_EVENT TRACING "events/kprobes/tshare_tries/"

/* Begins to count, from none on, the tries that match @filter, of "ret", what the core said. */
static inline bool probe_begin(const char *filter)
{
	/* The innermost first: where there is a frozen one, module and others call it. */
	static const char *const functions[] = {
		"alloc_contig_frozen_range_noprof",
		"alloc_contig_range_noprof",
		"alloc_contig_range",
	};
	bool probed = false;
	size_t i;

	trace_mount();
	for (i = 0; i < ARRAY_SIZE(functions) && !probed; i++)
		probed = write_file(TRACING "kprobe_events",
				    "r:tshare_tries %s ret=$retval:s32", functions[i]);
	return probed && trace_clear() && write_file(PROBE_EVENT "filter", filter) &&
	       write_file(PROBE_EVENT "enable", "1");
}

/* How many there have been; -1 if that can't be read. */
static inline int probe_count(void)
{
	FILE *file = fopen(TRACING "trace", "re");
	char line[512];
	int count = 0;

	while (file && fgets(line, sizeof(line), file))
		count += !!strstr(line, "tshare_tries: ");
	if (file)
		fclose(file);
	return file ? count : -1;
}

static inline bool probe_end(void)
{
	return write_file(PROBE_EVENT "enable", "0") &&
	       write_file(TRACING "kprobe_events", "-:tshare_tries");
}

#endif /* TSHARE_KSELFTEST_PROBE_H */
