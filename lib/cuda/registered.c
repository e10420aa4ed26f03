// SPDX-License-Identifier: MIT
#include "cuda/registered.h"

#include "cuda/driver.h"
#include "region/object.h"

bool registered_is_valid(const struct registered *memory, const void *start)
{
	return memory->made && cuda_memory_is((uintptr_t)start, memory->id);
}

int registered_make(struct registered *memory, void *start, uint64_t size, bool readonly,
		    struct cuda_scope *scope)
{
	int result = cuda_register(start, size, readonly);

	memory->made = !result;
	if (result)
		return result;
	memory->id = cuda_memory_id((uintptr_t)start);
	memory->device = scope->device;
	memory->retained = cuda_keep_context(scope);
	return 0;
}

void registered_drop(struct registered *memory, void *start, uint64_t size)
{
	bool valid = registered_is_valid(memory, start);
	struct cuda_scope scope;

	memory->made = false;
	if (!valid)
		return;
	if (!cuda_enter_to_undo(&scope, memory->device)) {
		cuda_unregister(start, size);
		cuda_leave(&scope);
	}
	if (memory->retained)
		cuda_release(memory->device);
}
