/* SPDX-License-Identifier: MIT */
/*
 * What a program that links the library can call. A program that compiles the library
 * into a larger one defines TSHARE_EXPORT as nothing, and keeps it for itself.
 */
#ifndef TSHARE_EXPORT
#define TSHARE_EXPORT __attribute__((visibility("default")))
#endif
