/* SPDX-License-Identifier: MIT */
/* Types and shapes of tensors, as show and stream print them. */
#ifndef TSHARE_CLI_SHAPE_H
#define TSHARE_CLI_SHAPE_H

#include "table.h"

/* The name of a type, or DLPack's three numbers if it has none. */
void shape_name_type(struct tshare_dtype dtype, char name[TSHARE_DTYPE_NAME_LEN]);

void shape_json(const char *key, const int64_t *dims, int32_t ndim);
void shape_cell(struct table *table, const int64_t *dims, int32_t ndim);

#endif /* TSHARE_CLI_SHAPE_H */
