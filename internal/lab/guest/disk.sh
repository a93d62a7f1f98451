# Makes an image out of what makeImage has put beside it. Arguments: the image, the release of the kernel, units to enable.
set -eu
image=$1 release=$2
shift 2
mkdir tree
cd tree
# /bin and the like are links in every Debian since 12; packages of 12 still have files below them.
for dir in bin sbin lib lib64; do
	mkdir -p "usr/$dir"
	ln -s "usr/$dir" "$dir"
done
mkdir -p dev proc sys run tmp root
for deb in ../archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner \
		--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*' \
		--exclude='./usr/share/perl/*' --exclude='./usr/lib/x86_64-linux-gnu/perl*/*'
done
# What maintainer scripts would have done, and somebody has to.
chmod 1777 tmp
echo root:x:0:0:root:/root:/bin/sh >etc/passwd
echo root:x:0: >etc/group
echo guest >etc/hostname
echo 0123456789abcdef0123456789abcdef >etc/machine-id
printf '127.0.0.1 localhost guest\n::1 localhost\n' >etc/hosts
[ -e bin/sh ] || ln -s dash bin/sh
[ -e usr/bin/awk ] || [ ! -e usr/bin/mawk ] || ln -s mawk usr/bin/awk
mkdir -p "lib/modules/$release/kernel"
cp ../modules/*.ko "lib/modules/$release/kernel/"
cp ../modules.builtin "lib/modules/$release/"
: >"lib/modules/$release/modules.order"
chroot . /sbin/depmod "$release"
SYSTEMD_LOG_LEVEL=warning chroot . /bin/systemd-sysusers
# For a unit that also has a script of System V, systemctl asks a program that is not here.
rm -rf etc/init.d/*
[ $# -eq 0 ] || SYSTEMD_OFFLINE=1 chroot . /bin/systemctl --quiet enable "$@"
# Or the first boot makes caches anew, which takes an emulated processor half a minute.
touch -r usr etc/.updated var/.updated
# mke2fs without a journal of the size that it thinks fit for this disk would be no ext4 to cut the power of.
mke2fs -q -t ext4 -d . -L guest "$image" 768M
