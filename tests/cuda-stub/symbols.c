// SPDX-License-Identifier: MIT
/*
 * How the driver's functions are found by name.
 *
 * STUB_GET_PROC_ADDRESS is the CUDA version whose form of cuGetProcAddress() is there: 12
 * has both, 11 the older one, 10 none.
 */
#include <string.h>

#include "internal.h"

#ifndef STUB_GET_PROC_ADDRESS
#define STUB_GET_PROC_ADDRESS 12
#endif

static bool hidden[N_FUNCTIONS];

void symbols_reset(void)
{
	memset(hidden, 0, sizeof(hidden));
}

void stub_hide(const char *function)
{
	pthread_mutex_lock(&lock);
	hidden[function_of(function)] = true;
	pthread_mutex_unlock(&lock);
}

#if STUB_GET_PROC_ADDRESS > 10

/* Only for their addresses: the parameters are in each function's own file. */
#define DECLARE(base, symbol, version) EXPORT void symbol(void);

FUNCTIONS(DECLARE)

static int find_symbol(const char *name, void **address, int version)
{
#define ENTRY(base, symbol, since) { #base, since, symbol },
	static const struct {
		const char *name;
		int since;
		void *address;
	} entries[] = { FUNCTIONS(ENTRY) };
	int i;

	*address = NULL;
	for (i = 0; i < N_FUNCTIONS; i++) {
		if (strcmp(entries[i].name, name))
			continue;
		if (hidden[i] || driver_version < entries[i].since)
			return NOT_FOUND;
		if (version < entries[i].since) {
			complain("cuGetProcAddress: %s is an older one in %d", name, version);
			return NOT_FOUND;
		}
		*address = entries[i].address;
		return SUCCESS;
	}
	return NOT_FOUND;
}

EXPORT int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
	return flags ? INVALID_VALUE : find_symbol(name, address, version);
}

#if STUB_GET_PROC_ADDRESS > 11
EXPORT int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			       int *status)
{
	int result = flags ? INVALID_VALUE : find_symbol(name, address, version);

	if (status)
		*status = result == SUCCESS ? 0 : 1;
	return result;
}
#endif

#endif
