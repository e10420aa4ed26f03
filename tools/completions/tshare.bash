# SPDX-License-Identifier: MIT
# Completions of tshare for bash. They need no other functions.

# Adds names that are read, a line each; those that list writes with escapes are left out.
_tshare_read() {
	local name quoted
	while IFS= read -r name; do
		quoted=$(printf %q "$name")
		[[ $name != *\\* && ($name == "$1"* || $quoted == "$1"*) ]] && COMPREPLY+=("$quoted")
	done
}

_tshare_names() {
	_tshare_read "$1" < <("${COMP_WORDS[0]}" list --noheadings --output NAME 2> /dev/null)
}

_tshare_streams() {
	_tshare_read "$1" < <("${COMP_WORDS[0]}" stream list --names 2> /dev/null)
}

_tshare_words() {
	local word
	for word in $2; do
		[[ $word == "$1"* ]] && COMPREPLY+=("$word")
	done
}

# The last one of a list with commas, or behind the + that adds to the usual ones.
_tshare_last() {
	local before=${1%"${1##*[,+]}"}
	_tshare_words "${1##*[,+]}" "$2"
	COMPREPLY=("${COMPREPLY[@]/#/"$before"}")
}

_tshare_files() {
	compopt -o filenames 2> /dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# _tshare_command WORD PLACE: completes a command and its arguments.
_tshare_command() {
	if [ "$2" -gt 0 ]; then
		_tshare_files "$1"
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$1")
	fi
}

# _tshare_value OPTION: completes its value; fails if OPTION is none that has one.
_tshare_value() {
	local columns='ID NAME SIZE TENSORS MODE OWNER GROUP USERS PIDS MAKER AGE GENERATION STATE RUNG
		NODE LIFETIME BACKEND FLAGS'
	case $verb,$1 in
	create,--from | create,-f | bench,--csv | bench,--plot) _tshare_files "$cur" ;;
	list,--output | list,-o) _tshare_last "$cur" "$columns" ;;
	top,--sort | top,-s) _tshare_words "$cur" 'size users generation rate age name' ;;
	*,--tensor | *,-t | *,--size | *,-s | *,--mode | *,-m | *,--node | top,--delay | top,-d) ;;
	*,--glob | *,-g | *,--generation | *,--timeout | bench,--max-size | bench,--time) ;;
	exec,--name | exec,-n | weights,--name) ;;
	stream,--rate | stream,--consumers | stream,-c | stream,--slots) ;;
	stream,--count | stream,--time | stream,-t | stream,--wait | stream,-w) ;;
	*) return 1 ;;
	esac
}

_tshare_options() {
	local layout='--tensor -t --size -s --mode -m --node --dma32 --contiguous --replace -r'
	case $verb in
	create) echo "$layout --from -f --quiet -q" ;;
	exec) echo "$layout --name -n" ;;
	info) echo '--json -j' ;;
	list) echo '--all-namespaces -A --json -j --output -o --output-all -O --bytes -b --noheadings -n' ;;
	show) echo '--json -j --bytes -b' ;;
	top) echo '--sort -s --delay -d' ;;
	unlink) echo '--all -a --glob -g --id -i --dry-run -n' ;;
	wait) echo '--generation -g --timeout -t' ;;
	pool) echo '--json -j --bytes -b --node' ;;
	weights) echo '--json -j --name --persist --replace' ;;
	bench) echo '--quick --max-size --time --csv --plot --progress' ;;
	stream)
		case ${words[2]} in
		list) echo '--json -j --noheadings -n --names -N' ;;
		show) echo '--json -j --bytes -b' ;;
		hz) echo '--count -n --time -t --wait -w --json -j' ;;
		record) echo '--count -n --time -t --wait -w' ;;
		play) echo '--rate --loop -l --consumers -c --slots -s --replace -r' ;;
		esac
		;;
	esac
}

_tshare() {
	local verbs='help info create list show top unlink save publish wait exec pool load unload
		weights bench stream'
	local dtypes='bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
		bfloat16 complex64 complex128 float8_e4m3fn float8_e5m2'
	local words=() verb=${COMP_WORDS[1]} cur before value place=0 i
	COMPREPLY=()
	# bash breaks words at : and =, which names and options have, and replaces what is behind.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if [[ $i -gt 2 && (${COMP_WORDS[i]} == [:=]* || ${words[-1]} == *[:=]) ]]; then
			words[-1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
		fi
	done
	cur=${words[-1]}
	before=${cur%"${cur##*[:=]}"}
	if [ "$COMP_CWORD" -eq 1 ]; then
		_tshare_words "$cur" "$verbs --help -h --version -V"
		return
	fi
	if [[ $cur == --*=* ]]; then
		value=${cur%%=*} cur=${cur#*=}
		_tshare_value "$value"
		return
	fi
	_tshare_value "${words[-2]}" && return
	if [[ $cur == -* ]]; then
		_tshare_words "$cur" "--help -h $(_tshare_options)"
		return
	fi
	# The arguments in front of this word.
	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		if [[ ${words[i]} == -- && $verb == exec ]]; then
			_tshare_command "$cur" $((${#words[@]} - 2 - i))
			return
		elif [[ ${words[i]} == -* ]]; then
			(_tshare_value "${words[i]}") && ((++i))
		else
			((++place))
		fi
	done
	case $verb,$place in
	help,*) _tshare_words "$cur" "$verbs" ;;
	show,* | unlink,* | publish,* | wait,* | save,0)
		_tshare_names "$cur"
		COMPREPLY=("${COMPREPLY[@]#"$before"}")
		;;
	save,*) _tshare_files "$cur" ;;
	create,2 | exec,1) _tshare_words "$cur" "$dtypes" ;;
	weights,0) _tshare_words "$cur" 'load show verify' ;;
	weights,*) _tshare_files "$cur" ;;
	pool,0) _tshare_words "$cur" set ;;
	stream,0) _tshare_words "$cur" 'list show hz record play' ;;
	stream,1)
		case ${words[2]} in
		show | hz | record) _tshare_streams "$cur" ;;
		play) _tshare_files "$cur" ;;
		esac
		COMPREPLY=("${COMPREPLY[@]#"$before"}")
		;;
	stream,2)
		case ${words[2]} in
		record) _tshare_files "$cur" ;;
		esac
		;;
	load,*)
		compopt -o nospace 2> /dev/null
		_tshare_words "$cur" 'max_mib= user_max_mib= ns_max_mib= pool_mib='
		;;
	esac
}

complete -F _tshare tshare
