/* SPDX-License-Identifier: MIT */
/* Compiled alone with each installed header, as C and as C++. */
#include TSHARE_HEADER

int main(void)
{
#ifdef TSHARE_H
	/* Macros are compiled only where they are used. */
	struct tshare_dtype dtype = TSHARE_FLOAT32;
	struct tshare_options options = TSHARE_OPTIONS_INIT;

	return !(dtype.bits == 32 && options.mode == 0600);
#else
	return 0;
#endif
}
