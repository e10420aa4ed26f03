// SPDX-License-Identifier: GPL-2.0-only
/* The bodies of the tracepoints. Only they look into trace.h's arguments. */
#include <linux/mm.h>
#include <linux/tshare.h>

#include "alloc.h"
#include "compat.h"
#include "desc.h"
#include "region.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
