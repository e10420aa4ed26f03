# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Tests of containers by podman, with the privileges of root and without; to be sourced by
# tests/debian/booted, which sets $tmp and has made the users. Containers have no network, as that
# would need more packages.

readonly PODMAN=(podman run --rm --network none)
readonly DEVICE=(--device /dev/tshare) KEEP=(--group-add keep-groups)

# login USER COMMAND...: as if USER had logged in, with a session of systemd.
login() { runuser -l -c 'exec "$@"' -- "$1" sh "${@:2}"; }

rootful() { "${PODMAN[@]}" "$@"; }
# rootless USER ARGUMENT...
rootless() { login "$1" "${PODMAN[@]}" "${@:2}"; }

# uses BACKEND ARGUMENT...: whether it is the one that a container takes which is run by rootful or
# rootless with the arguments.
uses() {
	"${@:2}" tshare tshare info > "$tmp/said" 2>&1
	grep -E "^$1 +used\$" "$tmp/said" || { cat "$tmp/said"; return 1; }
}

# The image has the command, a shell and the libraries that they need. No registry can be reached.
image_is_imported_by_root_and_by_users() {
	local program user flags
	read -ra flags < <(pkg-config --cflags --libs tshare) &&
		gcc -Wall -Werror peek.c "${flags[@]}" -o "$tmp/peek" && mkdir -p "$tmp/image/tmp" || return
	for program in /usr/bin/{sleep,tshare} /bin/sh "$tmp/peek"; do
		ldd "$program" | grep -o '/[^ ]*' | xargs cp -L --parents -t "$tmp/image" "$program" || return
	done
	mv "$tmp/image$tmp/peek" "$tmp/image/" && tar -C "$tmp/image" -cf "$tmp/image.tar" . &&
		podman import -q "$tmp/image.tar" tshare || return
	for user in member stranger; do
		loginctl enable-linger "$user" && login "$user" podman import -q "$tmp/image.tar" tshare || return
	done
}
container_of_root_with_the_device_uses_the_module() {
	uses kmod rootful "${DEVICE[@]}"
}
other_user_in_a_container_of_root_needs_the_number_of_the_group() {
	local user=("${DEVICE[@]}" --user 1234:1234)
	uses shm rootful "${user[@]}" && grep 'join group tshare' "$tmp/said" &&
		uses kmod rootful "${user[@]}" --group-add "$(getent group tshare | cut -d: -f3)"
}
rootless_container_of_a_member_keeps_the_group() {
	uses kmod rootless member "${DEVICE[@]}" "${KEEP[@]}"
}
rootless_container_lacks_the_group_unless_it_keeps_it() {
	uses shm rootless member "${DEVICE[@]}" && grep 'join group tshare' "$tmp/said" &&
		uses shm rootless member "${DEVICE[@]}" --group-add "$(getent group tshare | cut -d: -f3)"
}
rootless_container_of_another_user_uses_shared_memory() {
	uses shm rootless stranger "${DEVICE[@]}" "${KEEP[@]}" && grep 'join group tshare' "$tmp/said"
}
container_without_the_device_uses_shared_memory() {
	uses shm rootful && uses shm rootless member
}
container_without_the_device_is_told_the_option() {
	says 'a container needs --device /dev/tshare' rootful --env TSHARE_BACKEND=kmod tshare tshare list
}

# has_own_names RUN...: whether a container neither sees the host's name nor is in its way.
has_own_names() {
	"$@" tshare sh -c 'tshare list; tshare exec -n of-host 5 uint8 -- tshare list' \
		> "$tmp/said" 2>&1 && [ "$(grep -c of-host "$tmp/said")" -eq 1 ] || { cat "$tmp/said"; return 1; }
}
# shares_names_of_host RUN...: whether the name of each leads the other to the region.
shares_names_of_host() {
	"$@" --ipc=host tshare sh -c 'tshare show of-host && tshare create of-container 6 uint8' &&
		member tshare show of-container && member tshare unlink of-container
}
container_has_names_of_its_own() {
	member tshare create of-host 4 uint8 && has_own_names rootful "${DEVICE[@]}" &&
		has_own_names rootless member "${DEVICE[@]}" "${KEEP[@]}"
}
container_in_the_host_s_ipc_namespace_shares_its_names() {
	shares_names_of_host rootless member "${DEVICE[@]}" "${KEEP[@]}" &&
		says 'belongs to another user' rootful "${DEVICE[@]}" --ipc=host tshare tshare unlink of-host &&
		rootful "${DEVICE[@]}" --ipc=host --cap-add IPC_OWNER tshare tshare unlink of-host &&
		! member tshare show of-host
}
name_that_a_container_has_left_is_found_and_removed_on_the_host() {
	local id
	rootful "${DEVICE[@]}" tshare tshare create left-behind 4 uint8 && ! tshare show left-behind &&
		says 'in use' tshare unload &&
		id=$(tshare list --all-namespaces --noheadings --output ID,NAME | sed -n 's/ *left-behind$//p') &&
		tshare unlink --id "${id// /}" && ! tshare list -A | grep left-behind
}
container_without_the_device_shares_files_of_the_host_s_ipc_namespace() {
	local -x TSHARE_BACKEND=shm
	member tshare create of-host 4 uint8 && has_own_names rootless member &&
		shares_names_of_host rootless member && member tshare unlink of-host
}

# joins OPTION... -- RUN...: whether a second container finds a name of the first one, whose IPC
# namespace it joins.
joins() {
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	"$@" --detach --name first --ipc=shareable "${options[@]}" tshare \
		tshare exec -n of-first 4 uint8 -- sleep 300 &&
		"$@" --ipc=container:first --timeout 120 "${options[@]}" tshare \
			sh -c 'until tshare show of-first; do sleep 1; done'
}
containers_share_names_in_the_ipc_namespace_of_one() {
	joins "${DEVICE[@]}" -- rootful && podman rm -f -t 0 first &&
		joins "${DEVICE[@]}" "${KEEP[@]}" -- rootless member && login member podman rm -f -t 0 first
}
containers_without_the_device_share_files_in_the_ipc_namespace_of_one() {
	joins -- rootless member && login member podman rm -f -t 0 first
}
size_of_a_container_s_shared_memory_is_limited_by_its_option() {
	says '/dev/shm has 1 MiB free' rootless member --shm-size 1m tshare \
		tshare exec -n large 2000000 uint8 -- sh -c : &&
		rootless member --shm-size 3m tshare tshare exec -n large 2000000 uint8 -- sh -c :
}
# passes OPTION... -- [login USER]: what a container prints which inherits the descriptor 3 of a
# region that has no name.
passes() {
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	# shellcheck disable=SC2016 # the inner shell's own variables
	"${@:2}" tshare exec 32 uint8 -- bash -c 'exec 3<&$TSHARE_FD && "$0" "of the host" > /dev/null && "$@"' \
		"$tmp/peek" "${PODMAN[@]}" --preserve-fds=1 "${options[@]}" tshare /peek
}
descriptor_works_in_a_container_with_the_device() {
	says 'kmod: of the host' passes "${DEVICE[@]}" -- &&
		says 'kmod: of the host' passes "${DEVICE[@]}" "${KEEP[@]}" -- login member
}
descriptor_of_the_module_needs_the_device() {
	says 'fd: is a dma-buf, which only the module knows' passes -- && grep 'needs --device /dev/tshare' "$tmp/said"
}

# exceeds ARGUMENT...: whether the kernel refuses a container, which is run by rootful or rootless
# with the arguments, two million bytes.
exceeds() {
	says 'exceed RLIMIT_MEMLOCK' "$@" tshare tshare exec 2000000 uint8 -- sh -c :
}
readonly LOCK=(--ulimit memlock=1048576)
container_of_root_is_limited_unless_it_may_lock_memory() {
	exceeds rootful "${DEVICE[@]}" "${LOCK[@]}" &&
		rootful "${DEVICE[@]}" "${LOCK[@]}" --cap-add IPC_LOCK tshare tshare exec 2000000 uint8 -- sh -c :
}
rootless_container_is_limited_whatever_its_root_may() {
	exceeds rootless member "${DEVICE[@]}" "${KEEP[@]}" "${LOCK[@]}" --cap-add IPC_LOCK
}
rootless_container_gets_no_limit_above_its_user_s() {
	# shellcheck disable=SC2016 # the inner shell's own variables
	says RLIMIT_MEMLOCK login member sh -c 'ulimit -l 1024 && exec "$@"' sh "${PODMAN[@]}" \
		--ulimit memlock=2097152 tshare sh -c 'echo it runs' && ! grep 'it runs' "$tmp/said"
}
parameter_of_the_module_limits_each_container_by_itself() {
	local parameter=/sys/module/tshare/parameters/ns_max_mib status
	echo 1 > $parameter
	exceeds rootful "${DEVICE[@]}" && tshare exec 800000 uint8 -- \
		"${PODMAN[@]}" "${DEVICE[@]}" tshare tshare exec 800000 uint8 -- sh -c :
	status=$?
	echo 0 > $parameter
	return $status
}

container_laws() {
	law image_is_imported_by_root_and_by_users
	law container_of_root_with_the_device_uses_the_module
	law other_user_in_a_container_of_root_needs_the_number_of_the_group
	law rootless_container_of_a_member_keeps_the_group
	law rootless_container_lacks_the_group_unless_it_keeps_it
	law rootless_container_of_another_user_uses_shared_memory
	law container_without_the_device_uses_shared_memory
	law container_without_the_device_is_told_the_option
	law container_has_names_of_its_own
	law container_in_the_host_s_ipc_namespace_shares_its_names
	law name_that_a_container_has_left_is_found_and_removed_on_the_host
	law container_without_the_device_shares_files_of_the_host_s_ipc_namespace
	law containers_share_names_in_the_ipc_namespace_of_one
	law containers_without_the_device_share_files_in_the_ipc_namespace_of_one
	law size_of_a_container_s_shared_memory_is_limited_by_its_option
	law descriptor_works_in_a_container_with_the_device
	law descriptor_of_the_module_needs_the_device
	law container_of_root_is_limited_unless_it_may_lock_memory
	law rootless_container_is_limited_whatever_its_root_may
	law rootless_container_gets_no_limit_above_its_user_s
	law parameter_of_the_module_limits_each_container_by_itself
}
