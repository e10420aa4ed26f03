// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "registration.h"

#include <errno.h>
#include <pthread.h>

#include "cuda.h"
#include "lock.h"
#include "populate.h"
#include "region.h"

static pthread_cond_t unlocked = PTHREAD_COND_INITIALIZER;

/* The threads that waited are the parent's. */
static void after_fork_in_child(void)
{
	unlocked = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

void registration_lock(struct tshare_region *region)
{
	tshare_lock();
	while (region->registration.locked)
		tshare_lock_wait(&unlocked);
	region->registration.locked = true;
	tshare_unlock();
}

void registration_unlock(struct tshare_region *region)
{
	tshare_lock();
	region->registration.locked = false;
	pthread_cond_broadcast(&unlocked);
	tshare_unlock();
}

bool registration_is_valid(const struct tshare_region *region)
{
	const struct registration *registration = &region->registration;

	return registration->registered &&
	       cuda_memory_is((uintptr_t)region->data, registration->memory_id);
}

static int register_region(struct tshare_region *region, struct cuda_scope *scope)
{
	struct registration *registration = &region->registration;
	int result;

	/* The driver would do it in one thread, with locks that all its users wait for. */
	tshare_populate(region->data, region->handle.size, !region->readonly);
	result = cuda_register(region->data, region->handle.size, region->readonly);
	if (result)
		return result;
	registration->registered = true;
	registration->memory_id = cuda_memory_id((uintptr_t)region->data);
	registration->device = scope->device;
	registration->retained = cuda_keep_context(scope);
	return 0;
}

int registration_make(struct tshare_region *region, int device, bool *created)
{
	struct registration *registration = &region->registration;
	struct cuda_scope scope;
	int result;

	*created = false;
	if (region->readonly && !cuda_registers_readonly(device))
		return -EOPNOTSUPP;
	/*
	 * One that isn't valid any more went with its context. That was the caller's, or
	 * somebody has reset the device: then the reference to the primary context has gone,
	 * too.
	 */
	if (registration_is_valid(region))
		return 0;
	registration->registered = false;
	registration->imported = false;
	result = cuda_enter(&scope, device);
	if (result)
		return result;
	result = register_region(region, &scope);
	*created = scope.created && !result;
	cuda_leave(&scope);
	return result;
}

void registration_drop(struct tshare_region *region)
{
	struct registration *registration = &region->registration;
	struct cuda_scope scope;

	bool valid;

	if (!registration->registered || registration->pins || registration->imported)
		return;
	valid = registration_is_valid(region);
	registration->registered = false;
	if (!valid)
		return;
	if (!cuda_enter_to_undo(&scope, registration->device)) {
		cuda_unregister(region->data, region->handle.size);
		cuda_leave(&scope);
	}
	if (registration->retained)
		cuda_release(registration->device);
}

void registration_release(struct tshare_region *region)
{
	/* What a child has copied of it is its parent's. */
	if (!cuda_is_forked())
		registration_drop(region);
}
