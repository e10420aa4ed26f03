/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_PACKAGE_H
#define TSHARE_CLI_PACKAGE_H

/*
 * Executes "python -m @module" with the arguments after the verb. Returns the exit status only if
 * that fails.
 */
int run_package(const char *module, int argc, char **argv);

#endif /* TSHARE_CLI_PACKAGE_H */
