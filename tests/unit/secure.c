// SPDX-License-Identifier: MIT
/*
 * What a setuid program takes from its caller's environment. The library is linked
 * into it, since such a program finds no shared one beside itself.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define NOT_SETUID 77

static char program[] = "/var/tmp/tshare-test-XXXXXX";

/* Main function of the setuid program; its result shows which variable counted. */
static int use_the_library(void)
{
	struct tshare_region *region;

	if (!getauxval(AT_SECURE))
		return NOT_SETUID;
	if (tshare_ctx_new(NULL, &ctx))
		return error_says("TSHARE_BACKEND") ? 2 : 1;
	return !!tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region);
}

static int run_setuid(void *errors)
{
	char backend[] = "TSHARE_BACKEND=none", directory[] = "TSHARE_SHM_DIR=relative";
	char log[] = "TSHARE_LOG=debug", argument[] = "setuid";
	char *const arguments[] = { program, argument, NULL };
	char *const environment[] = { backend, directory, log, NULL };

	if (dup2(*(int *)errors, 2) < 0)
		return 1;
	execve(program, arguments, environment);
	return 1;
}

static void make_setuid_program(void)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    copy = mkostemp(program, O_CLOEXEC);
	struct stat st;

	CHECK(self >= 0 && copy >= 0 && !fstat(self, &st));
	CHECK(sendfile(copy, self, NULL, st.st_size) == st.st_size);
	CHECK(!fchown(copy, USER_ONE, USER_ONE) && !fchmod(copy, 04755));
	close(copy);
	close(self);
}

TEST(a_setuid_program_ignores_its_callers_variables)
{
	int errors = memfd_create("errors", MFD_CLOEXEC), status;
	char text[256] = "";

	if (geteuid())
		SKIP("needs root, to be two users");
	make_setuid_program();
	status = in_child(run_setuid, &errors);
	unlink(program);
	CHECK(pread(errors, text, sizeof(text) - 1, 0) >= 0);
	close(errors);
	if (status == NOT_SETUID)
		SKIP("/var/tmp is mounted with nosuid");
	CHECK(!status);
	CHECK(!*text);
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "setuid"))
		_exit(use_the_library());
	return tap_main(nothing, nothing);
}
