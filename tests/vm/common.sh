# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Functions that the scripts of tests/ share; to be sourced, not run.

# shellcheck disable=SC2034 # for scripts that source this
CALLERS_PATH=$PATH
# depmod and mkfs.ext4 are where a user's PATH does not look.
PATH=$PATH:/usr/sbin:/sbin
# shellcheck disable=SC2034
ROOT=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
# A failure inside $(...) is a failure, too.
shopt -s inherit_errexit

TSHARE_CACHE=${XDG_CACHE_HOME:-${HOME:?}/.cache}/tshare

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 2
}

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# usage FILE: the comment at the head of FILE, which is its help text.
usage() {
	sed -n '3,/^$/s/^# \{0,1\}//p' "$1"
}

# Package lists of our own, so that a newer kernel's suite never becomes part
# of the machine's configuration. The mirror is whichever the machine uses.
APT_STATE=$TSHARE_CACHE/apt
# Where a package's name has no architecture.
APT_ARCHITECTURE=amd64
# Whose signatures are trusted.
APT_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

private_apt() {
	local tool=$1
	shift
	"$tool" -q -o Dir::Etc::SourceList="$APT_STATE/sources.list" \
		-o APT::Architecture="$APT_ARCHITECTURE" \
		-o APT::Architectures="$APT_ARCHITECTURE,amd64" \
		-o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$APT_STATE/lists" \
		-o Dir::Cache="$APT_STATE/cache" \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

# use_packages_of ARCHITECTURE: from here on private_apt gets packages of that architecture,
# and this machine's as NAME:amd64. They have lists of their own, which most runs don't need.
use_packages_of() {
	[ "$1" != "$APT_ARCHITECTURE" ] || return 0
	APT_ARCHITECTURE=$1
	APT_STATE+=/$1
}

# architecture_of KERNEL: what a kernel of tests/vm/kernel runs on.
architecture_of() {
	case $1 in
	*-arm64*) echo arm64 ;;
	*) echo amd64 ;;
	esac
}

# mirror RELEASE: the URI this machine fetches the Debian suite RELEASE from.
mirror() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' |
		awk -v release="$1" '$1 == release && $2 == "main" && !seen++ { print $3 }'
}

# private_apt_read LINE...: the lists of those sources, in APT_STATE.
private_apt_read() {
	mkdir -p "$APT_STATE"/{lists,cache/archives}/partial
	local line
	for line; do
		echo "deb [signed-by=$APT_KEYRING] $line main"
	done > "$APT_STATE/sources.list"
	private_apt apt-get update >&2
}

# mirrors: the URI of this machine's Debian, then that of its security updates.
mirrors() {
	local codename main
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	main=$(mirror "$codename")
	[ -n "$main" ] || die "apt has no source for Debian '$codename'"
	echo "$main"
	mirror "$codename-security"
}

# The kernels are those of bookworm, also where the machine itself is newer.
private_apt_update() {
	local uris
	uris=$(mirrors)
	mapfile -t uris <<< "$uris"
	private_apt_read "${uris[0]} bookworm" "${uris[0]} bookworm-backports" \
		${uris[1]:+"${uris[1]} bookworm-security"}
}

private_apt_update_locked() (
	mkdir -p "$APT_STATE"
	exec 8> "$APT_STATE/.lock"
	flock 8
	private_apt_update
)

# unpack_packages DIR PACKAGE...: what the packages hold, without installing.
unpack_packages() {
	local dir=$1 debs
	shift
	debs=$(mktemp -d "$dir/debs.XXXXXX")
	(cd "$debs" && private_apt apt-get download "$@" >&2)
	local deb
	for deb in "$debs"/*.deb; do
		dpkg -x "$deb" "$dir"
	done
	rm -r "$debs"
}
