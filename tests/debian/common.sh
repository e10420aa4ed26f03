# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What tests/debian/run and boot share; to be sourced in the top folder.

# shellcheck source=tests/debian/law.sh
. tests/debian/law.sh
tree=$PWD
out=$tree/build/debian
version=$(cat VERSION)
# A version that follows this one.
next=${version%.*}.$((${version##*.} + 1))
tmp=$(mktemp -d)
chmod 755 "$tmp"
root=$tmp/root
trap 'cd "$tree" && remove_root; rm -rf "$tmp"' EXIT
unset MAKEFLAGS MAKEOVERRIDES DESTDIR PREFIX
# Some programs are where a user's PATH does not look.
PATH=$PATH:/usr/sbin:/sbin

# skip REASON FUNCTION...
skip() {
	local reason=$1 name
	shift
	for name; do
		count=$((count + 1))
		echo "ok $count - $name # SKIP $reason"
	done
}

may_make_namespaces() {
	local own=(--mount --pid --net)
	[ "$(id -u)" -eq 0 ] || own+=(--map-root-user --map-auto)
	unshare "${own[@]}" --fork mount -t tmpfs tmpfs /mnt 2> /dev/null
}

# In the folder root is a minimal Debian of its own. Its files belong to root, or to those users whose
# IDs a user without privileges may use.
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(unshare --map-root-user --map-auto)

remove_root() { "${as_root[@]}" rm -rf "$root"; }

# unpack_root: with this version of the packages in /root/first, and the next one in /root/next.
unpack_root() {
	remove_root && mkdir "$root" && "${as_root[@]}" tar -C "$root" -xf "$archive" &&
		"${as_root[@]}" mkdir "$root"/root/{first,next,src} &&
		"${as_root[@]}" cp "$out"/first/*.deb "$root/root/first" &&
		"${as_root[@]}" cp "$out"/next/*.deb "$root/root/next" &&
		"${as_root[@]}" cp -r debian examples tests/debian/{booted,containers.sh,law.sh,peek.c} "$root/root/src"
}

inside() { tests/debian/inside "$root" "$@"; }

# With the packages in apt's cache, as there is no network. No file has to be on the disk before the
# next one is written.
apt_get() { inside apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"; }

# install first|next [PACKAGE...]: those packages of tshare; without an argument all.
install() {
	local from=$1 package paths=()
	shift
	[ $# -gt 0 ] || set -- libtshare0 libtshare-dev python3-tshare tshare tshare-dkms tshare-doc
	for package; do
		paths+=("/root/$from/$(cd "$out/$from" && echo "${package}"_*.deb)")
	done
	apt_get install "${paths[@]}"
}

# The kernels whose headers are there.
releases() { (cd "$root/usr/src" && ls -d linux-headers-*-amd64) | sed 's/^linux-headers-//'; }

# has_module VERSION: whether each kernel has the module once, and of that version. It is compressed
# if those of the kernel are.
has_module() {
	local modules=$root/usr/lib/modules file
	diff <(releases | sed 's,$,/updates/dkms/tshare.ko,') \
		<(cd "$modules" && find . -name 'tshare.ko*' -printf '%P\n' | sed 's/[.]xz$//' | sort) || return
	for file in "$modules"/*/updates/dkms/tshare.ko*; do
		[ "$(modinfo -F version "$file")" = "$1" ] || { modinfo "$file"; return 1; }
	done
}
has_no_module() {
	! find "$root/usr/lib/modules" -name 'tshare.ko*' | grep .
}

# What apt, dpkg and caches keep of their own work, but for apt's copies of packages.
records() {
	inside find /var/cache /var/lib/apt /var/lib/dpkg /var/log -path /var/cache/apt/archives -prune -o \
		-type f -exec sha256sum {} + | LC_ALL=C sort
}

# What is in the file system, but for what apt, dpkg and caches keep of their own work.
snapshot() {
	inside find / -xdev \( -path /dev -o -path /proc -o -path /root -o -path /run -o -path /sys \
		-o -path /tmp -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
		-o -path /var/log \) -prune -o -printf '%p %y %m %u:%g %l\n' \
		-type f -exec sha256sum {} + | LC_ALL=C sort
}
