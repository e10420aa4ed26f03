// SPDX-License-Identifier: MIT
/* What is left of the library in a program that has loaded it with dlopen(). */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tshare.h>

#include "tap.h"

struct library {
	void *handle;
	__typeof__(tshare_ctx_new) *ctx_new;
	__typeof__(tshare_region_create) *region_create;
	__typeof__(tshare_region_publish) *region_publish;
	__typeof__(tshare_region_get_event_fd) *region_get_event_fd;
};

static void load(struct library *library)
{
	library->handle = dlopen(TSHARE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	CHECK(library->handle);
	*(void **)&library->ctx_new = dlsym(library->handle, "tshare_ctx_new");
	*(void **)&library->region_create = dlsym(library->handle, "tshare_region_create");
	*(void **)&library->region_publish = dlsym(library->handle, "tshare_region_publish");
	*(void **)&library->region_get_event_fd =
		dlsym(library->handle, "tshare_region_get_event_fd");
	CHECK(library->ctx_new && library->region_create && library->region_publish &&
	      library->region_get_event_fd);
}

/* Wakes the thread behind a descriptor when the library has been closed. */
static int wake_after_dlclose(void *unused)
{
	struct library library;
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	pid_t pid;
	int fd;

	(void)unused;
	load(&library);
	if (library.ctx_new(NULL, &ctx) ||
	    library.region_create(ctx, NULL, 1, NULL, 0, NULL, &region) ||
	    library.region_get_event_fd(region, &fd))
		return 1;
	pid = fork();
	if (!pid) {
		usleep(100000);
		_exit(library.region_publish(region, NULL) ? 2 : 0);
	}
	if (dlclose(library.handle) || waitpid(pid, NULL, 0) != pid)
		return 3;
	usleep(100000);
	return 0;
}

TEST(dlclose_leaves_the_thread_of_the_library_its_code)
{
	CHECK(!in_child(wake_after_dlclose, NULL));
}

static void nothing(void)
{
}

int main(void)
{
	return tap_main(nothing, nothing);
}
