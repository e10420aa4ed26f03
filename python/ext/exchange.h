/* SPDX-License-Identifier: MIT */
/* __dlpack_c_exchange_api__ of Tensor and of CudaTensor. */
#ifndef TSHARE_EXT_EXCHANGE_H
#define TSHARE_EXT_EXCHANGE_H

#include "ext.h"

/* Adds the exchange tables to the types: 0, or -1 with an error set. */
int ts_exchange_init(void);

#endif /* TSHARE_EXT_EXCHANGE_H */
