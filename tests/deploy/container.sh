#!/bin/sh
# Runs a command in a container, as Docker does with read_only, cap_drop: [ALL], tmpfs: [/tmp] and
# systempaths=unconfined: container.sh ROOT UID FOLDER MOUNT... -- COMMAND...
# ROOT is what the image holds; a MOUNT is FROM:TO, with :ro behind it for one that is only to be read.
# To be started by root, by: unshare --mount --pid --fork --kill-child --ipc --uts. It becomes process 1.
set -eu
root=$1 user=$2 folder=$3
shift 3

# Writes to the root, such as those that make the places of mounts, end in memory.
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
new=/mnt/root
mount -t proc proc $new/proc
mount --rbind /sys $new/sys
for each in /sys /sys/fs/cgroup /sys/fs/cgroup/*; do
    ! mountpoint -q "$each" || mount -o remount,bind,ro "$new$each"
done
mount --rbind /dev $new/dev
mount -t tmpfs -o mode=1777 tmpfs $new/tmp
while [ "$1" != -- ]; do
    from=${1%%:*} to=${1#*:}
    to=$new${to%:ro}
    if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "${to%/*}" && : >>"$to"; fi
    mount --bind "$from" "$to"
    [ "$1" = "${1%:ro}" ] || mount -o remount,bind,ro "$to"
    shift
done
shift
mount -o remount,ro $new

cd $new
pivot_root . tmp
umount -l /tmp # what is under it now is the container's own
cd "$folder"
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
