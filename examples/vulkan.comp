// SPDX-License-Identifier: MIT
// The shader of vulkan.c: the negative of a frame, in the memory that holds it.
#version 450

layout(local_size_x = 64) in;

// Whole pages. The frame's neighbours may share the first and the last of them.
layout(binding = 0) buffer Pages
{
	uint words[];
};

layout(push_constant) uniform Frame
{
	uint first;
	uint count;
};

void main()
{
	uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;

	for (uint i = gl_GlobalInvocationID.x; i < count; i += step)
		words[first + i] = ~words[first + i];
}
