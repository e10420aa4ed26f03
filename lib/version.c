// SPDX-License-Identifier: MIT
#include "export.h"
#include "tshare.h"

TSHARE_EXPORT
const char *tshare_version(void)
{
	return TSHARE_VERSION;
}
