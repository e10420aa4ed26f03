# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# The sources as they are released; to be sourced, not run, in the folder at the top.

# source_tree FOLDER: the source package of the files that git knows, as dpkg-source takes it:
# FOLDER/tshare_VERSION.orig.tar.gz and, unpacked and with debian/, FOLDER/tshare. The same files
# make the same archive.
source_tree() {
	local stamp version
	stamp=$(dpkg-parsechangelog -S Timestamp)
	version=$(cat VERSION)
	mkdir -p "$1/tshare" || return
	(git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
		tar -C "$1/tshare" -xf - &&
		tar -C "$1" --exclude=tshare/debian --sort=name --mtime="@$stamp" --owner=0 --group=0 \
			--numeric-owner --mode=u=rwX,go=rX --transform="s/^tshare/tshare-$version/" \
			-cf - tshare | gzip -9n > "$1/tshare_$version.orig.tar.gz"
}
