/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_PACKAGE_H
#define TSHARE_CLI_PACKAGE_H

/*
 * Becomes "python -m @module" with the arguments behind the verb. Returns the exit status only
 * if that fails; @requirement is what pip can install then.
 */
int run_package(const char *module, const char *requirement, int argc, char **argv);

#endif /* TSHARE_CLI_PACKAGE_H */
