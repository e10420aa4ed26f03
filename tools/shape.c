// SPDX-License-Identifier: MIT
#include "shape.h"

#include <inttypes.h>

#include "json.h"

void shape_name_type(struct tshare_dtype dtype, char name[TSHARE_DTYPE_NAME_LEN])
{
	if (tshare_dtype_get_name(dtype, name))
		snprintf(name, TSHARE_DTYPE_NAME_LEN, "(%u, %u, %u)", dtype.code, dtype.bits,
			 dtype.lanes);
}

void shape_json(const char *key, const int64_t *dims, int32_t ndim)
{
	int32_t i;

	json_open(key, '[');
	for (i = 0; i < ndim; i++)
		json_int(NULL, dims[i]);
	json_close(']');
}

void shape_cell(struct table *table, const int64_t *dims, int32_t ndim)
{
	char text[TSHARE_NDIM_LIMIT * sizeof("-9223372036854775808, ") + 1] = "";
	size_t length = 0;
	int32_t i;

	for (i = 0; i < ndim; i++)
		length += snprintf(text + length, sizeof(text) - length, "%s%" PRId64,
				   i ? ", " : "", dims[i]);
	table_cell(table, "(%s)", text);
}
