// SPDX-License-Identifier: MIT
/* The version has one source, the file VERSION, which the build passes in. */
#include <stdio.h>
#include <string.h>

#include <tshare.h>

#include "tap.h"

TEST(library_reports_the_version_of_the_file)
{
	CHECK(!strcmp(tshare_version(), EXPECTED_VERSION));
}

TEST(header_has_the_version_of_the_file)
{
	char version[32];

	CHECK(!strcmp(TSHARE_VERSION, EXPECTED_VERSION));
	snprintf(version, sizeof(version), "%d.%d.%d", TSHARE_VERSION_MAJOR, TSHARE_VERSION_MINOR,
		 TSHARE_VERSION_PATCH);
	CHECK(!strcmp(version, EXPECTED_VERSION));
}

static void nothing(void)
{
}

int main(void)
{
	return tap_main(nothing, nothing);
}
