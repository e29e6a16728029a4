# boot.sh WORK REPO boots the systemd of this machine, in namespaces of its own, on a copy of
# this machine's files that is gone at the end. It runs the script WORK/driver, with its output
# in WORK/log, and powers off. WORK is /srv/work there, and a copy of REPO is /srv/repo.
#
# unshare has to start it, as process 1 of new namespaces of all kinds but users'.
set -e
work=$1 repo=$2
mount --make-rprivate /
mkdir "$work/files" && mount -t tmpfs tmpfs "$work/files" && cd "$work/files"
mkdir root root-upper root-work repo-upper repo-work
mount -t overlay -o lowerdir=/,upperdir=root-upper,workdir=root-work overlay root

for dir in run tmp dev sys; do mount -t tmpfs -o mode=755 tmpfs root/$dir; done
chmod 1777 root/tmp
mount -t proc proc root/proc
mount --bind root/proc/sys root/proc/sys
mount -o remount,bind,ro root/proc/sys # no namespace has all of it
mkdir -p root/sys/fs/cgroup root/dev/pts root/dev/shm root/srv/repo root/srv/work
mount -t cgroup2 cgroup2 root/sys/fs/cgroup
mount -t devpts -o ptmxmode=666 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
for node in null zero full random urandom tty; do
	touch root/dev/$node
	mount --bind /dev/$node root/dev/$node
done
touch root/dev/console
mount --bind /dev/null root/dev/console

mount -t overlay -o "lowerdir=$repo,upperdir=repo-upper,workdir=repo-work" overlay root/srv/repo
mount --bind "$work" root/srv/work
: > root/etc/fstab
cat > root/etc/systemd/system/driver.service <<'UNIT'
[Unit]
DefaultDependencies=no

[Service]
Type=oneshot
WorkingDirectory=/srv/repo
ExecStart=/bin/bash -ex /srv/work/driver
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=append:/srv/work/log
StandardError=inherit
UNIT
ip link set lo up

cd root
mkdir old
pivot_root . old
umount -l old
mount --make-rshared / # credentials come in by propagation
exec env -i container=other "PATH=$PATH" /lib/systemd/systemd --unit=driver.service --show-status=no
