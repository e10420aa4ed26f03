/* SPDX-License-Identifier: MIT */
/* Compiled alone with each installed header, as C and as C++. */
#include TSHARE_HEADER

#ifdef TSHARE_H
/* In C an initialiser of a static object has to be constant. */
static const struct tshare_dtype initialised[] = {
	TSHARE_BOOL_INIT,	  TSHARE_INT8_INIT,	 TSHARE_INT16_INIT,
	TSHARE_INT32_INIT,	  TSHARE_INT64_INIT,	 TSHARE_UINT8_INIT,
	TSHARE_UINT16_INIT,	  TSHARE_UINT32_INIT,	 TSHARE_UINT64_INIT,
	TSHARE_FLOAT16_INIT,	  TSHARE_FLOAT32_INIT,	 TSHARE_FLOAT64_INIT,
	TSHARE_BFLOAT16_INIT,	  TSHARE_COMPLEX64_INIT, TSHARE_COMPLEX128_INIT,
	TSHARE_DTYPE_INIT(3, 64),
};

static const struct tshare_spec spec = {
	sizeof(spec), "x", TSHARE_FLOAT32_INIT, 0, 0, 0, TSHARE_OFFSET_START,
};

static int is_same(struct tshare_dtype one, struct tshare_dtype other)
{
	return one.code == other.code && one.bits == other.bits && one.lanes == other.lanes;
}
#endif

int main(void)
{
#ifdef TSHARE_H
	/* Macros are compiled only where they are used. */
	struct tshare_dtype dtype = TSHARE_FLOAT32;
	uint64_t offsets[] = { TSHARE_OFFSET_AUTO, TSHARE_OFFSET_START };

	const struct tshare_dtype expressions[] = {
		TSHARE_BOOL,	 TSHARE_INT8,	   TSHARE_INT16,      TSHARE_INT32,
		TSHARE_INT64,	 TSHARE_UINT8,	   TSHARE_UINT16,     TSHARE_UINT32,
		TSHARE_UINT64,	 TSHARE_FLOAT16,   TSHARE_FLOAT32,    TSHARE_FLOAT64,
		TSHARE_BFLOAT16, TSHARE_COMPLEX64, TSHARE_COMPLEX128, TSHARE_DTYPE(3, 64),
	};
	size_t i;

	for (i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++)
		if (!is_same(expressions[i], initialised[i]))
			return 1;
	return !(dtype.bits == 32 && !offsets[0] && offsets[1] && is_same(spec.dtype, dtype));
#else
	return 0;
#endif
}
