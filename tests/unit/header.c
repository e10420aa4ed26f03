/* SPDX-License-Identifier: MIT */
/* Compiled alone with each installed header, as C and as C++. */
#include TSHARE_HEADER

int main(void)
{
#ifdef TSHARE_H
	/* Macros are compiled only where they are used. */
	struct tshare_dtype dtype = TSHARE_FLOAT32;
	uint64_t offsets[] = { TSHARE_OFFSET_AUTO, TSHARE_OFFSET_START };

	return !(dtype.bits == 32 && !offsets[0] && offsets[1]);
#else
	return 0;
#endif
}
