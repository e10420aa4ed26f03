// SPDX-License-Identifier: MIT
/*
 * Has a GPU make the negative of a frame where it lies in a region, without a copy. Vulkan
 * imports the frame's dma-buf or, in shared memory, its address. vulkan.comp is the
 * shader; Documentation/vulkan.rst explains both.
 *
 *	vulkan [-p] [-r] NAME [TENSOR [FRAME]]
 *
 *	-p  import the address, although there is a dma-buf
 *	-r  open the region read-only, which shows the error that a reader gets
 *
 * NAME is the region's, TENSOR the tensor's (default: the only one), of unsigned integers.
 * FRAME is an index of its first dimension (default: all of it).
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tshare.h>
#include <vulkan/vulkan.h>

/* The array shader[], compiled from vulkan.comp. */
#include "vulkan.comp.h"

#define WORD	   sizeof(uint32_t)
#define GROUP_SIZE 64

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct config {
	const char *name;
	const char *tensor;
	int64_t frame;
	uint32_t open_flags;
	bool by_pointer;
};

/* The pages that a frame lies in, and where it lies in them. */
struct frame {
	uint64_t offset;
	uint64_t size;
	struct {
		uint32_t first;
		uint32_t count;
	} words;
};

/* A way to import memory. */
struct way {
	const char *imported;
	VkExternalMemoryHandleTypeFlagBits handle;
	VkMemoryPropertyFlags needed;
	/* The queue family that has the memory while this program's hasn't. */
	uint32_t others;
	/* The stages that wait for the result on this device. */
	VkPipelineStageFlags result_stage;
	VkAccessFlags result_access;
	uint32_t extension_count;
	const char *extensions[3];
};

static const struct way dmabuf_way = {
	.imported = "dma-bufs",
	.handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
	.others = VK_QUEUE_FAMILY_FOREIGN_EXT,
	.result_stage = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
	.extension_count = 3,
	.extensions = { VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
			VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
			VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME },
};

/* Coherent, because the program maps nothing that it could flush or invalidate. */
static const struct way pointer_way = {
	.imported = "host pointers",
	.handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
	.needed = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
	.others = VK_QUEUE_FAMILY_IGNORED,
	.result_stage = VK_PIPELINE_STAGE_HOST_BIT,
	.result_access = VK_ACCESS_HOST_READ_BIT,
	.extension_count = 1,
	.extensions = { VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME },
};

struct gpu {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkPhysicalDeviceProperties properties;
	uint32_t family;
	VkDevice device;
	VkQueue queue;
};

struct import {
	VkBuffer buffer;
	VkDeviceMemory memory;
};

static void check(VkResult result, const char *call)
{
	if (result != VK_SUCCESS)
		errx(1, "%s: error %d (of VkResult, in vulkan_core.h)", call, result);
}

/* The frame */

static struct tshare_tensor *open_frame(struct tshare_ctx *ctx, const struct config *config)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.flags = config->open_flags,
	};
	struct tshare_tensor *tensor, *frame;
	struct tshare_region *region;

	if (!config->tensor) {
		if (tshare_tensor_open(ctx, config->name, &options, &tensor) < 0)
			errx(1, "%s", tshare_error_get());
		return tensor;
	}
	if (tshare_region_open(ctx, config->name, &options, &region) < 0 ||
	    tshare_region_find_tensor(region, config->tensor, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	tshare_region_unref(region);
	if (config->frame < 0)
		return tensor;
	if (tshare_tensor_select(tensor, 0, config->frame, &frame) < 0)
		errx(1, "%s", tshare_error_get());
	tshare_tensor_unref(tensor);
	return frame;
}

/* Refuses a tensor that the shader could not compute on, before the driver does. */
static struct frame find_frame(const struct tshare_tensor *tensor, uint32_t page)
{
	uint64_t start = tshare_tensor_get_byte_offset(tensor);
	uint64_t nbytes = tshare_tensor_get_nbytes(tensor);
	uint64_t first = start / page * page;
	uint64_t end = (start + nbytes + page - 1) / page * page;

	/* Drivers map all that they import writable: the shader's write would be SIGSEGV. */
	if (tshare_tensor_is_readonly(tensor))
		errx(1, "the frame is read-only, and the shader writes to it");
	if (tshare_tensor_get_dtype(tensor).code != TSHARE_UINT8.code)
		errx(1, "the frame is not of unsigned integers");
	if (!tshare_tensor_is_contiguous(tensor))
		errx(1, "the frame is not contiguous (are its rows padded?)");
	if (!nbytes)
		errx(1, "the frame has no elements");
	if (start % WORD || nbytes % WORD)
		errx(1, "the frame is not of whole 32-bit words: %" PRIu64 " bytes at %" PRIu64,
		     nbytes, start);
	return (struct frame){
		.offset = first,
		.size = end - first,
		.words = { (start - first) / WORD, nbytes / WORD },
	};
}

/* The device */

static bool has_extension(VkPhysicalDevice physical, const char *name)
{
	VkExtensionProperties *extensions;
	bool found = false;
	uint32_t count;

	check(vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL),
	      "vkEnumerateDeviceExtensionProperties");
	extensions = calloc(count + 1, sizeof(*extensions));
	if (!extensions)
		err(1, NULL);
	check(vkEnumerateDeviceExtensionProperties(physical, NULL, &count, extensions),
	      "vkEnumerateDeviceExtensionProperties");
	for (uint32_t i = 0; i < count; i++)
		found |= !strcmp(extensions[i].extensionName, name);
	free(extensions);
	return found;
}

/* Importable for a storage buffer, which not all is that an extension covers. */
static bool can_import(VkPhysicalDevice physical, const struct way *way)
{
	const VkPhysicalDeviceExternalBufferInfo info = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
		.handleType = way->handle,
	};
	VkExternalBufferProperties found = {
		.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES,
	};
	VkPhysicalDeviceProperties properties;

	vkGetPhysicalDeviceProperties(physical, &properties);
	if (properties.apiVersion < VK_API_VERSION_1_1)
		return false;
	for (uint32_t i = 0; i < way->extension_count; i++)
		if (!has_extension(physical, way->extensions[i]))
			return false;
	vkGetPhysicalDeviceExternalBufferProperties(physical, &info, &found);
	return found.externalMemoryProperties.externalMemoryFeatures &
	       VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
}

static bool find_compute_queue(VkPhysicalDevice physical, uint32_t *family)
{
	VkQueueFamilyProperties families[16];
	uint32_t count = LENGTH(families);

	vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
	for (*family = 0; *family < count; ++*family)
		if (families[*family].queueFlags & VK_QUEUE_COMPUTE_BIT)
			return true;
	return false;
}

/* The first device that can import the memory. */
static void find_device(struct gpu *gpu, const struct way *way)
{
	VkPhysicalDevice devices[16];
	uint32_t count = LENGTH(devices);
	VkResult result = vkEnumeratePhysicalDevices(gpu->instance, &count, devices);

	/* Where no driver finds a device, the loader fails. */
	if (result == VK_ERROR_INITIALIZATION_FAILED || !count)
		errx(1, "no Vulkan device: there are drivers, but none for this machine");
	if (result != VK_INCOMPLETE)
		check(result, "vkEnumeratePhysicalDevices");
	for (uint32_t i = 0; i < count; i++) {
		gpu->physical = devices[i];
		vkGetPhysicalDeviceProperties(gpu->physical, &gpu->properties);
		if (can_import(gpu->physical, way) &&
		    find_compute_queue(gpu->physical, &gpu->family))
			return;
	}
	errx(1, "no driver here can import %s: not that of '%s'%s", way->imported,
	     gpu->properties.deviceName, count > 1 ? ", nor another" : "");
}

static void open_gpu(struct gpu *gpu, const struct way *way)
{
	const VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo instance_info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
	};
	const float priority = 1;
	VkDeviceQueueCreateInfo queue_info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	const VkDeviceCreateInfo device_info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue_info,
		.enabledExtensionCount = way->extension_count,
		.ppEnabledExtensionNames = way->extensions,
	};
	VkResult result = vkCreateInstance(&instance_info, NULL, &gpu->instance);

	if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
		errx(1, "no Vulkan driver");
	check(result, "vkCreateInstance");
	find_device(gpu, way);
	queue_info.queueFamilyIndex = gpu->family;
	check(vkCreateDevice(gpu->physical, &device_info, NULL, &gpu->device), "vkCreateDevice");
	vkGetDeviceQueue(gpu->device, gpu->family, 0, &gpu->queue);
}

/* The import */

static VkBuffer create_buffer(const struct gpu *gpu, const struct way *way, uint64_t size)
{
	const VkExternalMemoryBufferCreateInfo external = {
		.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
		.handleTypes = way->handle,
	};
	const VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.pNext = &external,
		.size = size,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
	};
	uint32_t largest = gpu->properties.limits.maxStorageBufferRange;
	VkBuffer buffer;

	/* No more words than a shader can count, either. */
	if (size > largest)
		errx(1, "the frame is too large: %" PRIu64 " bytes, of %u that the device takes",
		     size, largest);
	check(vkCreateBuffer(gpu->device, &info, NULL, &buffer), "vkCreateBuffer");
	return buffer;
}

/* @types: those that the driver can import the memory as. */
static uint32_t find_memory_type(const struct gpu *gpu, const struct way *way, uint32_t types)
{
	VkPhysicalDeviceMemoryProperties memory;

	vkGetPhysicalDeviceMemoryProperties(gpu->physical, &memory);
	for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
		if (types & 1U << i && !(way->needed & ~memory.memoryTypes[i].propertyFlags))
			return i;
	errx(1, "the driver of '%s' has no type of memory for this region",
	     gpu->properties.deviceName);
}

/* Binds what @handle, an import's struct of Vulkan, says to the buffer. */
static void bind_import(const struct gpu *gpu, const struct way *way, struct import *import,
			uint64_t size, uint32_t types, const void *handle)
{
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.pNext = handle,
		.allocationSize = size,
	};
	VkMemoryRequirements needed;
	VkResult result;

	vkGetBufferMemoryRequirements(gpu->device, import->buffer, &needed);
	if (needed.size > size)
		errx(1, "the driver of '%s' needs %" PRIu64 " bytes for %" PRIu64,
		     gpu->properties.deviceName, needed.size, size);
	info.memoryTypeIndex = find_memory_type(gpu, way, types & needed.memoryTypeBits);

	result = vkAllocateMemory(gpu->device, &info, NULL, &import->memory);
	if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
		errx(1, "the driver of '%s' refuses the memory: it can import %s, but not this one",
		     gpu->properties.deviceName, way->imported);
	check(result, "vkAllocateMemory");
	check(vkBindBufferMemory(gpu->device, import->buffer, import->memory, 0),
	      "vkBindBufferMemory");
}

static struct import import_dmabuf(const struct gpu *gpu, const struct tshare_region *region,
				   const struct frame *frame)
{
	struct import import = { .buffer = create_buffer(gpu, &dmabuf_way, frame->size) };
	/* Some drivers import a dma-buf for one buffer only. */
	const VkMemoryDedicatedAllocateInfo dedicated = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
		.buffer = import.buffer,
	};
	VkImportMemoryFdInfoKHR handle = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
		.pNext = &dedicated,
		.handleType = dmabuf_way.handle,
	};
	VkMemoryFdPropertiesKHR properties = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR,
	};
	PFN_vkGetMemoryFdPropertiesKHR get_properties =
		(PFN_vkGetMemoryFdPropertiesKHR)vkGetDeviceProcAddr(gpu->device,
								    "vkGetMemoryFdPropertiesKHR");

	/* A dma-buf of the frame's pages: the device reaches no others. Vulkan will close it. */
	if (tshare_region_export(region, frame->offset, frame->size, 0, &handle.fd) < 0)
		errx(1, "%s", tshare_error_get());
	check(get_properties(gpu->device, handle.handleType, handle.fd, &properties),
	      "vkGetMemoryFdPropertiesKHR");
	bind_import(gpu, &dmabuf_way, &import, frame->size, properties.memoryTypeBits, &handle);
	return import;
}

static struct import import_pointer(const struct gpu *gpu, const struct tshare_region *region,
				    const struct frame *frame)
{
	struct import import = { .buffer = create_buffer(gpu, &pointer_way, frame->size) };
	VkImportMemoryHostPointerInfoEXT handle = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
		.handleType = pointer_way.handle,
		.pHostPointer = (char *)tshare_region_get_data(region) + frame->offset,
	};
	VkMemoryHostPointerPropertiesEXT properties = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT,
	};
	VkPhysicalDeviceExternalMemoryHostPropertiesEXT limits = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
	};
	VkPhysicalDeviceProperties2 all_limits = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
		.pNext = &limits,
	};
	PFN_vkGetMemoryHostPointerPropertiesEXT get_properties =
		(PFN_vkGetMemoryHostPointerPropertiesEXT)vkGetDeviceProcAddr(
			gpu->device, "vkGetMemoryHostPointerPropertiesEXT");

	vkGetPhysicalDeviceProperties2(gpu->physical, &all_limits);
	if (((uintptr_t)handle.pHostPointer | frame->size) % limits.minImportedHostPointerAlignment)
		errx(1, "the driver of '%s' imports multiples of %" PRIu64 " bytes",
		     gpu->properties.deviceName, limits.minImportedHostPointerAlignment);
	check(get_properties(gpu->device, handle.handleType, handle.pHostPointer, &properties),
	      "vkGetMemoryHostPointerPropertiesEXT");
	bind_import(gpu, &pointer_way, &import, frame->size, properties.memoryTypeBits, &handle);
	return import;
}

/* The computation */

static VkPipeline create_pipeline(const struct gpu *gpu, VkPipelineLayout layout)
{
	const VkShaderModuleCreateInfo module_info = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = sizeof(shader),
		.pCode = shader,
	};
	VkComputePipelineCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.pName = "main",
		},
		.layout = layout,
	};
	VkPipeline pipeline;

	check(vkCreateShaderModule(gpu->device, &module_info, NULL, &info.stage.module),
	      "vkCreateShaderModule");
	check(vkCreateComputePipelines(gpu->device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline),
	      "vkCreateComputePipelines");
	vkDestroyShaderModule(gpu->device, info.stage.module, NULL);
	return pipeline;
}

static VkDescriptorSet create_descriptors(const struct gpu *gpu, VkDescriptorPool *pool,
					  const VkDescriptorSetLayout *layout, VkBuffer buffer)
{
	const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 };
	const VkDescriptorPoolCreateInfo pool_info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = 1,
		.poolSizeCount = 1,
		.pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1,
		.pSetLayouts = layout,
	};
	const VkDescriptorBufferInfo whole = { buffer, 0, VK_WHOLE_SIZE };
	VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
		.descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.pBufferInfo = &whole,
	};

	check(vkCreateDescriptorPool(gpu->device, &pool_info, NULL, pool),
	      "vkCreateDescriptorPool");
	info.descriptorPool = *pool;
	check(vkAllocateDescriptorSets(gpu->device, &info, &write.dstSet),
	      "vkAllocateDescriptorSets");
	vkUpdateDescriptorSets(gpu->device, 1, &write, 0, NULL);
	return write.dstSet;
}

/* Between two barriers, which take the memory over from the others and return it. */
static void record(const struct gpu *gpu, const struct way *way, VkCommandBuffer commands,
		   VkBuffer buffer, uint32_t groups)
{
	uint32_t ours = way->others == VK_QUEUE_FAMILY_IGNORED ? way->others : gpu->family;
	VkBufferMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
		.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
		.srcQueueFamilyIndex = way->others,
		.dstQueueFamilyIndex = ours,
		.buffer = buffer,
		.size = VK_WHOLE_SIZE,
	};

	vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
			     VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, NULL, 1, &barrier, 0,
			     NULL);
	vkCmdDispatch(commands, groups, 1, 1);
	barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
	barrier.dstAccessMask = way->result_access;
	barrier.srcQueueFamilyIndex = ours;
	barrier.dstQueueFamilyIndex = way->others;
	vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, way->result_stage, 0,
			     0, NULL, 1, &barrier, 0, NULL);
}

/* Returns when the queue has done the commands. */
static void submit(const struct gpu *gpu, VkCommandBuffer commands)
{
	const VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	const VkSubmitInfo submit_info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &commands,
	};
	VkFence fence;

	check(vkCreateFence(gpu->device, &fence_info, NULL, &fence), "vkCreateFence");
	check(vkQueueSubmit(gpu->queue, 1, &submit_info, fence), "vkQueueSubmit");
	check(vkWaitForFences(gpu->device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
	vkDestroyFence(gpu->device, fence, NULL);
}

static void run_shader(const struct gpu *gpu, const struct way *way, const struct import *import,
		       const struct frame *frame)
{
	const VkDescriptorSetLayoutBinding binding = {
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = 1,
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
	};
	const VkDescriptorSetLayoutCreateInfo set_info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 1,
		.pBindings = &binding,
	};
	const VkPushConstantRange constants = { VK_SHADER_STAGE_COMPUTE_BIT, 0,
						sizeof(frame->words) };
	VkDescriptorSetLayout set_layout;
	const VkPipelineLayoutCreateInfo layout_info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &set_layout,
		.pushConstantRangeCount = 1,
		.pPushConstantRanges = &constants,
	};
	const VkCommandPoolCreateInfo pool_info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.queueFamilyIndex = gpu->family,
	};
	VkCommandBufferAllocateInfo commands_info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandBufferCount = 1,
	};
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};
	uint32_t groups = (frame->words.count + GROUP_SIZE - 1) / GROUP_SIZE;
	VkDescriptorPool descriptor_pool;
	VkDescriptorSet descriptors;
	VkCommandBuffer commands;
	VkPipelineLayout layout;
	VkPipeline pipeline;

	check(vkCreateDescriptorSetLayout(gpu->device, &set_info, NULL, &set_layout),
	      "vkCreateDescriptorSetLayout");
	check(vkCreatePipelineLayout(gpu->device, &layout_info, NULL, &layout),
	      "vkCreatePipelineLayout");
	pipeline = create_pipeline(gpu, layout);
	descriptors = create_descriptors(gpu, &descriptor_pool, &set_layout, import->buffer);
	check(vkCreateCommandPool(gpu->device, &pool_info, NULL, &commands_info.commandPool),
	      "vkCreateCommandPool");
	check(vkAllocateCommandBuffers(gpu->device, &commands_info, &commands),
	      "vkAllocateCommandBuffers");

	check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
	vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
				&descriptors, 0, NULL);
	vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(frame->words),
			   &frame->words);
	/* The shader takes several words each, where the device takes fewer groups. */
	if (groups > gpu->properties.limits.maxComputeWorkGroupCount[0])
		groups = gpu->properties.limits.maxComputeWorkGroupCount[0];
	record(gpu, way, commands, import->buffer, groups);
	check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
	submit(gpu, commands);

	vkDestroyCommandPool(gpu->device, commands_info.commandPool, NULL);
	vkDestroyDescriptorPool(gpu->device, descriptor_pool, NULL);
	vkDestroyPipeline(gpu->device, pipeline, NULL);
	vkDestroyPipelineLayout(gpu->device, layout, NULL);
	vkDestroyDescriptorSetLayout(gpu->device, set_layout, NULL);
}

static void parse_arguments(struct config *config, int argc, char **argv)
{
	bool valid = true;
	int option;

	*config = (struct config){ .frame = -1 };
	while ((option = getopt(argc, argv, "pr")) != -1) {
		switch (option) {
		case 'p':
			config->by_pointer = true;
			break;
		case 'r':
			config->open_flags = TSHARE_READONLY;
			break;
		default:
			valid = false;
		}
	}
	argv += optind;
	argc -= optind;
	valid &= argc >= 1 && argc <= 3;
	config->name = argv[0];
	if (argc > 1)
		config->tensor = argv[1];
	if (argc > 2)
		valid &= sscanf(argv[2], "%" SCNd64, &config->frame) == 1 && config->frame >= 0;
	if (!valid)
		errx(2, "usage: vulkan [-p] [-r] NAME [TENSOR [FRAME]]");
}

/* After an error the kernel cleans up. */
int main(int argc, char **argv)
{
	struct tshare_limits limits = { .size = sizeof(limits) };
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	const struct way *way;
	struct import import;
	struct config config;
	struct tshare_ctx *ctx;
	struct frame frame;
	struct gpu gpu;

	parse_arguments(&config, argc, argv);
	if (tshare_ctx_new(NULL, &ctx) < 0 || tshare_ctx_get_limits(ctx, &limits) < 0)
		errx(1, "%s", tshare_error_get());
	tensor = open_frame(ctx, &config);
	frame = find_frame(tensor, limits.page_size);
	region = tshare_tensor_get_region(tensor);

	way = limits.dmabuf && !config.by_pointer ? &dmabuf_way : &pointer_way;
	open_gpu(&gpu, way);
	if (way == &dmabuf_way) {
		import = import_dmabuf(&gpu, region, &frame);
		/* The import has the memory by itself. Only an address is valid no longer than this. */
		tensor = tshare_tensor_unref(tensor);
	} else {
		import = import_pointer(&gpu, region, &frame);
	}
	run_shader(&gpu, way, &import, &frame);
	printf("vulkan: %" PRIu32 " words on '%s', which imports %s\n", frame.words.count,
	       gpu.properties.deviceName, way->imported);

	vkDestroyBuffer(gpu.device, import.buffer, NULL);
	vkFreeMemory(gpu.device, import.memory, NULL);
	vkDestroyDevice(gpu.device, NULL);
	vkDestroyInstance(gpu.instance, NULL);
	tshare_tensor_unref(tensor);
	tshare_ctx_unref(ctx);
	return 0;
}
