// SPDX-License-Identifier: MIT
/* The records tshare.RegionInfo and tshare.Limits. */
#include "info.h"

#include <errno.h>
#include <stdlib.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "record.h"
#include "session.h"

static PyObject *info_type;
static PyObject *limits_type;

static const struct ts_record_field info_fields[] = {
	{ "name", DOC_RegionInfo_name },
	{ "size", DOC_RegionInfo_size },
	{ "mode", DOC_RegionInfo_mode },
	{ "uid", DOC_RegionInfo_uid },
	{ "gid", DOC_RegionInfo_gid },
	{ "id", DOC_RegionInfo_id },
	{ "lifetime", DOC_RegionInfo_lifetime },
	{ "draft", DOC_RegionInfo_draft },
	{ "tensor_count", DOC_RegionInfo_tensor_count },
	{ "readonly", DOC_RegionInfo_readonly },
	{ "node", DOC_RegionInfo_node },
	{ "dma32", DOC_RegionInfo_dma32 },
	{ "contiguous", DOC_RegionInfo_contiguous },
	{ "segments", DOC_RegionInfo_segments },
	{ "phys_addr", DOC_RegionInfo_phys_addr },
	{ "foreign", DOC_RegionInfo_foreign },
	{ "pool", DOC_RegionInfo_pool },
	{ NULL, NULL },
};

static const struct ts_record_field limits_fields[] = {
	{ "abi_version", DOC_Limits_abi_version },
	{ "page_size", DOC_Limits_page_size },
	{ "huge_page_size", DOC_Limits_huge_page_size },
	{ "bytes_limit", DOC_Limits_bytes_limit },
	{ "bytes_used", DOC_Limits_bytes_used },
	{ "region_bytes_max", DOC_Limits_region_bytes_max },
	{ "contiguous", DOC_Limits_contiguous },
	{ "dmabuf", DOC_Limits_dmabuf },
	{ NULL, NULL },
};

static PyObject *none_if(bool condition, PyObject *value)
{
	if (!condition || !value)
		return value;
	Py_DECREF(value);
	Py_RETURN_NONE;
}

PyObject *ts_info_new(const struct tshare_region_info *info)
{
	PyObject *values[] = {
		none_if(!*info->name, ts_text(info->name)),
		PyLong_FromUnsignedLongLong(info->region_size),
		PyLong_FromLong(info->mode),
		PyLong_FromUnsignedLong(info->uid),
		PyLong_FromUnsignedLong(info->gid),
		PyLong_FromUnsignedLongLong(info->id),
		ts_lifetime_name(info->lifetime),
		PyBool_FromLong(info->flags & TSHARE_DRAFT),
		PyLong_FromUnsignedLong(info->tensor_count),
		PyBool_FromLong(info->flags & TSHARE_READONLY),
		none_if(info->node < 0, PyLong_FromLong(info->node)),
		PyBool_FromLong(info->flags & TSHARE_DMA32),
		PyBool_FromLong(info->flags & TSHARE_CONTIGUOUS),
		PyLong_FromUnsignedLong(info->segments),
		PyLong_FromUnsignedLongLong(info->phys_addr),
		PyBool_FromLong(info->flags & TSHARE_FOREIGN),
		PyBool_FromLong(info->flags & TSHARE_POOL),
	};

	return ts_record_new(info_type, values, sizeof(values) / sizeof(values[0]));
}

PyObject *ts_limits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	struct tshare_limits limits = { .size = sizeof(limits) };
	struct tshare_ctx *ctx = ts_session();
	int err;

	if (!ctx)
		return NULL;
	err = tshare_ctx_get_limits(ctx, &limits);
	if (err < 0)
		return ts_raise(err, NULL);

	PyObject *values[] = {
		PyLong_FromUnsignedLong(limits.abi_version),
		PyLong_FromUnsignedLong(limits.page_size),
		PyLong_FromUnsignedLong(limits.huge_page_size),
		PyLong_FromUnsignedLongLong(limits.bytes_limit),
		PyLong_FromUnsignedLongLong(limits.bytes_used),
		PyLong_FromUnsignedLongLong(limits.region_bytes_max),
		PyBool_FromLong(limits.contiguous),
		PyBool_FromLong(limits.dmabuf),
	};

	return ts_record_new(limits_type, values, sizeof(values) / sizeof(values[0]));
}

struct infos {
	struct tshare_region_info *items;
	size_t count;
	size_t room;
};

/* Called without the GIL. */
static int gather(const struct tshare_region_info *info, void *data)
{
	struct infos *infos = data;

	if (infos->count == infos->room) {
		size_t room = infos->room ? 2 * infos->room : 16;
		void *items = realloc(infos->items, room * sizeof(*info));

		if (!items)
			return -ENOMEM;
		infos->items = items;
		infos->room = room;
	}
	infos->items[infos->count++] = *info;
	return 0;
}

PyObject *ts_list(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	PyThreadState *state;
	struct tshare_ctx *ctx = ts_session();
	struct infos infos = { NULL, 0, 0 };
	PyObject *list = NULL;
	size_t i;
	int err;

	if (!ctx)
		return NULL;
	state = PyEval_SaveThread();
	err = tshare_ctx_list(ctx, gather, &infos);
	PyEval_RestoreThread(state);
	if (err == -ENOMEM)
		PyErr_NoMemory();
	else if (err < 0)
		ts_raise(err, NULL);
	else
		list = PyList_New(infos.count);
	for (i = 0; list && i < infos.count; i++) {
		PyObject *item = ts_info_new(&infos.items[i]);

		if (!item || PyList_SetItem(list, i, item) < 0)
			Py_CLEAR(list);
	}
	free(infos.items);
	return list;
}

int ts_info_init(PyObject *module)
{
	info_type = ts_record_type("RegionInfo", DOC_RegionInfo, info_fields);
	limits_type = info_type ? ts_record_type("Limits", DOC_Limits, limits_fields) : NULL;
	if (!limits_type || PyModule_AddObjectRef(module, "RegionInfo", info_type) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "Limits", limits_type);
}
