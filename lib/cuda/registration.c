// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "cuda/registration.h"

#include <errno.h>
#include <pthread.h>

#include "base/populate.h"
#include "base/process.h"
#include "cuda/driver.h"
#include "cuda/registered.h"
#include "region/object.h"

static pthread_cond_t unlocked = PTHREAD_COND_INITIALIZER;

/* The child lacks the threads that waited. */
static void after_fork_in_child(void)
{
	unlocked = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

void registration_lock(struct tshare_region *region)
{
	process_lock();
	process_join(PROCESS_REGISTRATIONS, &hooks);
	while (region->registration.locked)
		process_lock_wait(&unlocked);
	region->registration.locked = true;
	process_unlock();
}

void registration_unlock(struct tshare_region *region)
{
	process_lock();
	region->registration.locked = false;
	pthread_cond_broadcast(&unlocked);
	process_unlock();
}

bool registration_is_valid(const struct tshare_region *region)
{
	return registered_is_valid(&region->registration.memory, region->data);
}

static int register_region(struct tshare_region *region, struct cuda_scope *scope)
{
	/* The driver would populate it in one thread, under locks that all its users need. */
	populate(region->data, region->handle.size, !region->readonly);
	return registered_make(&region->registration.memory, region->data, region->handle.size,
			       region->readonly, scope);
}

void registration_drop(struct tshare_region *region)
{
	struct registration *registration = &region->registration;

	if (registration->pins || registration->imported)
		return;
	registered_drop(&registration->memory, region->data, region->handle.size);
}

/* Before the region is unmapped. */
static void registration_release(struct tshare_region *region)
{
	/* In a child of fork() it is the parent's. */
	if (!cuda_is_forked())
		registration_drop(region);
}

int registration_make(struct tshare_region *region, int device, bool *created)
{
	struct cuda_scope scope;
	int result;

	*created = false;
	if (region->readonly && !cuda_registers_readonly(device))
		return -EOPNOTSUPP;
	if (registration_is_valid(region))
		return 0;
	region->registration.memory.made = false;
	region->registration.imported = false;
	result = cuda_enter(&scope, device);
	if (result)
		return result;
	region->release[REGION_REGISTRATION] = registration_release;
	result = register_region(region, &scope);
	*created = scope.created && !result;
	cuda_leave(&scope);
	return result;
}

bool registration_pin_again(struct tshare_region *region)
{
	struct registration *registration = &region->registration;
	bool again;

	/* Without a pin, a copy needn't wait for an import, which holds the lock. */
	if (!registration->pins)
		return false;
	registration_lock(region);
	again = registration->pins && registration_is_valid(region);
	if (again)
		registration->pins++;
	registration_unlock(region);
	return again;
}

void registration_unpin(struct tshare_region *region)
{
	registration_lock(region);
	region->registration.pins--;
	registration_drop(region);
	registration_unlock(region);
}
