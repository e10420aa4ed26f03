// SPDX-License-Identifier: MIT
#include "base/export.h"
#include "tshare.h"

TSHARE_EXPORT
const char *tshare_version(void)
{
	return TSHARE_VERSION;
}
