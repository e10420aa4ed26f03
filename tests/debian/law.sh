# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# To be sourced by scripts that print TAP. The caller sets $tmp, a folder.

# law FUNCTION: runs one test, named after FUNCTION, which passes if FUNCTION does.
count=0
failed=0
law() {
	count=$((count + 1))
	if "$1" > "$tmp/log" 2>&1; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		tail -n 60 "$tmp/log" | sed 's/^/# /'
		failed=1
	fi
}
