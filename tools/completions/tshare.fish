# SPDX-License-Identifier: MIT
# Completions of tshare for fish.

set -l verbs help info create list show top unlink save publish wait exec pool load unload weights bench stream
set -l dtypes bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 \
    bfloat16 complex64 complex128 float8_e4m3fn float8_e5m2
set -l columns ID NAME SIZE TENSORS MODE OWNER GROUP USERS PIDS MAKER AGE GENERATION STATE RUNG \
    NODE LIFETIME BACKEND FLAGS

function __fish_tshare_names
    tshare list --noheadings --output NAME 2>/dev/null | string match --invert --regex '\\\\'
end

function __fish_tshare_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

function __fish_tshare_streams
    tshare stream list --names 2>/dev/null | string match --invert --regex '\\\\'
end

# Whether the verb is stream, followed by one of these.
function __fish_tshare_stream
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = stream; and contains -- $words[3] $argv
end

complete -c tshare -f
complete -c tshare -n "not __fish_tshare_verb $verbs" -s V -l version -d 'Print the versions'
complete -c tshare -s h -l help -d 'Print help'
for verb in $verbs
    complete -c tshare -n "not __fish_tshare_verb $verbs" -a $verb
end

complete -c tshare -n '__fish_tshare_verb help' -a "$verbs"
complete -c tshare -n '__fish_tshare_verb info list show pool weights' -s j -l json -d 'Print JSON'
complete -c tshare -n '__fish_tshare_verb show unlink save publish wait' -a '(__fish_tshare_names)'

complete -c tshare -n '__fish_tshare_verb create exec' -s t -l tensor -x -d 'A named tensor'
complete -c tshare -n '__fish_tshare_verb create exec' -s s -l size -x -d 'Size of the region'
complete -c tshare -n '__fish_tshare_verb create exec' -s m -l mode -x -d 'Permission bits'
complete -c tshare -n '__fish_tshare_verb create exec pool' -l node -x -d 'NUMA node'
complete -c tshare -n '__fish_tshare_verb create exec' -l dma32 -d 'Addresses below 4 GiB'
complete -c tshare -n '__fish_tshare_verb create exec' -l contiguous -d 'Contiguous memory'
complete -c tshare -n '__fish_tshare_verb create exec' -s r -l replace -d 'Take the name over'
complete -c tshare -n '__fish_tshare_verb create exec' -a "$dtypes"
complete -c tshare -n '__fish_tshare_verb create' -s f -l from -r -F -d 'The array of a .npy file'
complete -c tshare -n '__fish_tshare_verb create' -s q -l quiet -d 'Do not print what was made'
complete -c tshare -n '__fish_tshare_verb exec' -s n -l name -x -d 'Name of the region'

complete -c tshare -n '__fish_tshare_verb list' -s A -l all-namespaces -d 'Those of all IPC namespaces'
complete -c tshare -n '__fish_tshare_verb list' -s o -l output -x -a "$columns" -d Columns
complete -c tshare -n '__fish_tshare_verb list' -s O -l output-all -d 'All columns'
complete -c tshare -n '__fish_tshare_verb list show pool' -s b -l bytes -d 'Sizes in bytes'
complete -c tshare -n '__fish_tshare_verb list' -s n -l noheadings -d 'No headings'

complete -c tshare -n '__fish_tshare_verb top' -s s -l sort -x \
    -a 'size users generation rate age name' -d Order
complete -c tshare -n '__fish_tshare_verb top' -s d -l delay -x -d 'Seconds between two looks'
complete -c tshare -n '__fish_tshare_verb unlink' -s a -l all -d 'All of your regions'
complete -c tshare -n '__fish_tshare_verb unlink' -s g -l glob -x -d 'Those that match'
complete -c tshare -n '__fish_tshare_verb unlink' -s i -l id -d 'Those with these ids'
complete -c tshare -n '__fish_tshare_verb unlink' -s n -l dry-run -d 'Only print'
complete -c tshare -n '__fish_tshare_verb save' -F
complete -c tshare -n '__fish_tshare_verb wait' -s g -l generation -x -d 'Until this one'
complete -c tshare -n '__fish_tshare_verb wait' -s t -l timeout -x -d 'Fail after these seconds'
complete -c tshare -n '__fish_tshare_verb pool' -a set
complete -c tshare -n '__fish_tshare_verb load' -a 'max_mib= user_max_mib= ns_max_mib= pool_mib='
complete -c tshare -n '__fish_tshare_verb weights' -F -a 'load show verify'
complete -c tshare -n '__fish_tshare_verb weights' -l name -x -d 'Name of the region'
complete -c tshare -n '__fish_tshare_verb weights' -l persist -d 'Leave the region'
complete -c tshare -n '__fish_tshare_verb weights' -l replace -d 'Replace a region of other files'
complete -c tshare -n '__fish_tshare_verb bench' -l quick -d 'Few sizes'
complete -c tshare -n '__fish_tshare_verb bench' -l max-size -x -d 'The largest array'
complete -c tshare -n '__fish_tshare_verb bench' -l time -x -d 'Seconds to measure'
complete -c tshare -n '__fish_tshare_verb bench' -l csv -r -F -d 'All results'
complete -c tshare -n '__fish_tshare_verb bench' -l plot -r -F -d 'A figure'
complete -c tshare -n '__fish_tshare_verb bench' -l progress -d 'Show progress'

set -l streams list show hz record play
complete -c tshare -n "__fish_tshare_verb stream; and not __fish_tshare_stream $streams" -a "$streams"
complete -c tshare -n '__fish_tshare_stream list show hz' -s j -l json -d 'Print JSON'
complete -c tshare -n '__fish_tshare_stream list' -s n -l noheadings -d 'No headings'
complete -c tshare -n '__fish_tshare_stream list' -s N -l names -d 'Names alone'
complete -c tshare -n '__fish_tshare_stream show' -s b -l bytes -d 'Sizes in bytes'
complete -c tshare -n '__fish_tshare_stream show hz record' -a '(__fish_tshare_streams)'
complete -c tshare -n '__fish_tshare_stream hz record' -s n -l count -x -d 'End after so many frames'
complete -c tshare -n '__fish_tshare_stream hz record' -s t -l time -x -d 'End after these seconds'
complete -c tshare -n '__fish_tshare_stream hz record' -s w -l wait -x -d 'Wait so long for the stream'
complete -c tshare -n '__fish_tshare_stream record play' -F
complete -c tshare -n '__fish_tshare_stream play' -l rate -x -d 'So many times as fast'
complete -c tshare -n '__fish_tshare_stream play' -s l -l loop -d 'Begin again after the last frame'
complete -c tshare -n '__fish_tshare_stream play' -s c -l consumers -x -d 'Begin with so many'
complete -c tshare -n '__fish_tshare_stream play' -s s -l slots -x -d 'Slots of the stream'
complete -c tshare -n '__fish_tshare_stream play' -s r -l replace -d 'Take the name over'
