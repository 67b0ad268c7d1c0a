#!/usr/bin/env bash
# Builds a small Linux with the kernel's NFS client and the usual editors: $1/vmlinuz and $1/initrd.
# Needs apt and the packages of `.ci/test`; everything is taken from this system's packages, so no root is needed.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
package=$(apt-cache depends linux-image-cloud-amd64 | grep -oP 'linux-image-\S+-cloud-amd64$' | tail -1)
version=${package#linux-image-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download "$package" >/dev/null && dpkg -x linux-image-*.deb kernel)
PATH=$PATH:/usr/sbin:/sbin
depmod -b "$work/kernel" "$version"
cp "$work/kernel/boot/vmlinuz-$version" "$out/vmlinuz"

root=$work/root
mkdir -p "$root"/{bin,sbin,usr/bin,proc,sys,dev,etc,tmp,mnt,run,root,lib64}
add() {  # copy programs with the libraries that they load
    local name path library
    for name in "$@"; do
        path=$(readlink -f "$(type -P "$name")") || { echo "missing: $name" >&2; exit 1; }
        cp -L "$path" "$root/usr/bin/$(basename "$name")"
        ldd "$path" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -Ln "$library" "$root$library" 2>/dev/null || true
        done
    done
}
add bash cat grep sed wc head tail sort cut cp mv rm mkdir rmdir ls stat touch chmod chown ln readlink tee \
    truncate dd cmp diff find xargs date sleep sync df echo printf tr uniq nl od split paste join vim nano ed \
    gawk perl rsync mount umount env timeout md5sum sha256sum seq id basename dirname expr uname modprobe stty setsid script
ln -sf gawk "$root/usr/bin/awk"
ln -sf /usr/bin/bash "$root/bin/bash"
cp /bin/busybox "$root/bin/busybox"
for applet in sh ip poweroff; do
    ln -sf /bin/busybox "$root/sbin/$applet"
    ln -sf /bin/busybox "$root/bin/$applet"
done
cp -r /usr/lib/x86_64-linux-gnu/perl-base "$root/usr/lib/x86_64-linux-gnu/"
python=$(basename "$(readlink -f /usr/bin/python3)")
add "/usr/bin/$python"
ln -sf "$python" "$root/usr/bin/python3"
dpkg -L "lib$python-minimal" | grep "^/usr/lib/$python/" | while read -r path; do
    [ ! -f "$path" ] || { mkdir -p "$root$(dirname "$path")" && cp -L "$path" "$root$path"; }
done
cp "$(dirname "$0")/guest_agent.py" "$root/agent.py"
find "$root/usr/lib/$python" -name '*.py' -exec /usr/bin/python3 -m py_compile {} + # or each first import in the guest does
mkdir -p "$root/usr/lib/terminfo/x" "$root/lib/terminfo/x"
cp /lib/terminfo/x/xterm "$root/lib/terminfo/x/"
printf 'root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/tmp:/bin/bash\n' >"$root/etc/passwd"
printf 'root:x:0:\nalice:x:1000:\n' >"$root/etc/group"

modules=$root/lib/modules/$version
mkdir -p "$modules"
cp "$work/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$modules/"
modprobe -d "$work/kernel" -S "$version" -D -a virtio_pci virtio_net nfsv3 | awk '/^insmod/{print $2}' | sort -u |
    while read -r module; do
        mkdir -p "$root/$(dirname "${module#"$work/kernel/"}")"
        cp "$module" "$root/${module#"$work/kernel/"}"
    done
depmod -b "$root" "$version"

cat >"$root/init" <<'INIT'
#!/bin/bash
export PATH=/usr/bin:/bin:/sbin HOME=/root TERM=xterm LC_ALL=C
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp; mount -t tmpfs run /run
mkdir -p /dev/pts; mount -t devpts devpts /dev/pts
modprobe -a virtio_pci virtio_net nfsv3
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
stty -F /dev/ttyS1 raw -echo -onlcr
python3 /agent.py </dev/ttyS1 >/dev/ttyS1
poweroff -f
INIT
chmod +x "$root/init"
# Not compressed: unpacking takes an emulated machine longer than reading.
(cd "$root" && find . | cpio -o -H newc --quiet >"$out/initrd.new")
mv "$out/initrd.new" "$out/initrd"
