/* SPDX-License-Identifier: MIT */
/*
 * Marks the functions that a program can call. A program that compiles the library into
 * itself defines TSHARE_EXPORT as nothing, and exports none.
 */
#ifndef TSHARE_EXPORT
#define TSHARE_EXPORT __attribute__((visibility("default")))
#endif
