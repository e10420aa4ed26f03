/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_CLI_PACKAGE_H
#define TSHARE_CLI_PACKAGE_H

/*
 * Executes "python -m @module" with the arguments after the verb. Returns the exit status only if
 * that fails; @requirement is what the error tells the user to install by pip.
 */
int run_package(const char *module, const char *requirement, int argc, char **argv);

#endif /* TSHARE_CLI_PACKAGE_H */
