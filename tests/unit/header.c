/* SPDX-License-Identifier: MIT */
/* Compiled alone with each installed header, as C and as C++. */
#include TSHARE_HEADER

int main(void)
{
	return 0;
}
