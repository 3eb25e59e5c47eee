#!/bin/bash
# bare_root -- the packages on a system that has nothing: debootstrap makes a root, apt installs the packages of this build into it,
# the daemon runs a job there as its own user, with a tracker and a server; then all is purged, and nothing is left behind.
#
# Needs root, debootstrap (scripts/packages --install bare), and a mirror: the one that apt uses here. BARE_ROOT=DIR: a fresh root
# that is used in place of a new one, and is changed. BARE_MODEL=FILE, BARE_TRIALS=N: what examples/daemon.sh is given there.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
root=${BARE_ROOT:-$dir/root}
pids=()
trap '[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>"$dir/err" || true; umount "$root/proc" 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || tail -n 40 "$dir/log"
    echo "bare_root: $*" >&2
    exit 1
}

inside() { # COMMAND...: in the root, as root
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"
}

quietly() {
    "$@" >"$dir/log" 2>&1 || fail "failed: $*"
}

# All files of the root but what apt and dpkg note for themselves.
all_files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./debs -o -path ./var/cache -o \
        -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./run \) -prune -o -print | sort)
}

[ "$(id -u)" = 0 ] || fail "needs root"
quietly cpack --config "$TEC_BUILD_DIR/CPackConfig.cmake" -G DEB -B "$dir/debs"
if [ -z "${BARE_ROOT:-}" ]; then
    command -v debootstrap >"$dir/log" || fail "debootstrap is missing: scripts/packages --install bare"
    mirror=$(sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>"$dir/err" | grep -m1 '/debian/\?$')
    quietly debootstrap --variant=minbase bookworm "$root" "$mirror"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/debs"
cp "$dir"/debs/*.deb "$root/debs/"
mount -t proc proc "$root/proc" 2>"$dir/err" || true
quietly inside apt-get update
# what the packages need of Debian comes first, and stays: only the packages themselves are compared
needs=$(for deb in "$root"/debs/*.deb; do dpkg-deb --field "$deb" Depends; done | tr ',' '\n' | sed 's/([^)]*)//; s/|.*//; s/ //g' | grep -v '^tec' | sort -u)
quietly inside apt-get install -y --no-install-recommends $needs
all_files >"$dir/before"

quietly inside sh -c 'apt-get install -y --no-install-recommends /debs/*.deb'
for user in tvmtune tecdevice; do
    inside getent passwd $user >"$dir/log" || fail "there is no user $user"
done
[ "$(stat -c '%U %a' "$root/etc/tec/pool.keys")" = "root 600" ] || fail "the keys of the pool: $(stat -c '%U %a' "$root/etc/tec/pool.keys")"

# as the units do it: folders of the users, keys copied by root, programs without rights
for place in "tvmtune tvmtune" "tvmtune rpc_tracker" "tecdevice rpc_server"; do
    set -- $place
    inside install -d -m 0700 -o "$1" -g "$1" "/var/lib/$2"
    [ "$2" = tvmtune ] || inside install -m 0600 -o "$1" -g "$1" /etc/tec/pool.keys "/var/lib/$2/pool.keys"
done
inside install -m 0600 -o tvmtune -g tvmtune /etc/tec/pool.keys /var/lib/tvmtune/pool.keys
inside install -d -m 0700 -o tecdevice -g tecdevice /run/rpc_server

as() { # USER COMMAND...: in the background
    local user=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/bin HOME=/ chroot --userspec="$user:$user" "$root" "$@" >>"$dir/programs" 2>&1 &
    pids+=($!)
}

until_file() { # FILE WORDS
    for _ in $(seq 300); do
        ! grep -q "$2" "$1" 2>"$dir/err" || return 0
        sleep 0.1
    done
    cat "$dir/programs"
    fail "'$2' does not come"
}
as tvmtune rpc_tracker --listen 127.0.0.1:0 --key-file /var/lib/rpc_tracker/pool.keys --state /var/lib/rpc_tracker/tracker.db
until_file "$dir/programs" "ready at port"
tracker=127.0.0.1:$(sed -n 's/.*ready at port \([0-9]*\).*/\1/p' "$dir/programs")
as tecdevice rpc_server --listen 127.0.0.1:0 --tracker "$tracker" --device-class local --key-file /var/lib/rpc_server/pool.keys \
    --folder /run/rpc_server
until_file "$dir/programs" "clients can lease its devices"
as tvmtune tvmtune serve --state /var/lib/tvmtune --tracker "$tracker" --key-file /var/lib/tvmtune/pool.keys --tolerance 900
until_file "$root/var/lib/tvmtune/port" .

client() {
    timeout 300 chroot --userspec=tvmtune:tvmtune "$root" tvmtune "$1" --state /var/lib/tvmtune "${@:2}" >"$dir/log" 2>&1 || fail "tvmtune $*"
}
client doctor --key-file /var/lib/tvmtune/pool.keys
grep -q "^ok      calibration" "$dir/log" || fail "the doctor does not come to its last step"
cat "$dir/log"
printf 'def mm(A: f32[32, 32], B: f32[32, 32]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n' >"$root/tmp/mm.te"
client submit /tmp/mm.te --trials 8 --threads 1
client submit /tmp/mm.te --trials 8 --threads 1 --device-class local
for job in 1 2; do
    client watch $job
    tail -n 1 "$dir/log"
    client fetch $job -o /tmp/$job.tec
    quietly inside tec run /tmp/$job.tec --threads 1
done
# the life of a model, by the programs that were installed
install -D -m 0755 examples/daemon.sh "$root/tmp/daemon.sh"
install -m 0644 "${BARE_MODEL:-tests/models/digits/model.onnx}" "$root/tmp/model.onnx"
options=(--threads=1)
[ -n "${BARE_MODEL:-}" ] || options+=(--dim=batch=1)
timeout "${BARE_SECONDS:-900}" env -i PATH=/usr/sbin:/usr/bin:/bin HOME=/tmp chroot --userspec=tvmtune:tvmtune "$root" bash /tmp/daemon.sh \
    installed /tmp/model.onnx "${BARE_TRIALS:-24}" "${options[@]}" 2>&1 | tee "$dir/log" || fail "examples/daemon.sh"
grep -q "^== untuned and tuned in turns" "$dir/log" || fail "examples/daemon.sh does not come to its end"
rm "$root/tmp/daemon.sh" "$root/tmp/model.onnx"

kill -TERM "${pids[@]}"
for pid in "${pids[@]}"; do wait "$pid" || fail "a program ended with $?"; done
pids=()

quietly inside apt-get remove -y tec-pool tec tec-runtime
[ -e "$root/var/lib/tvmtune/tune.db" ] || fail "removing the package removed the measurements"
! [ -e "$root/usr/bin/tec" ] || fail "the compiler is still there"
quietly inside apt-get purge -y tec-pool tec tec-runtime
! inside getent passwd tvmtune >"$dir/log" || fail "the user is still there"
all_files >"$dir/after"
diff "$dir/before" "$dir/after" | grep -v '^[0-9]' | grep -vE '/etc/(passwd|group|g?shadow|subuid|subgid)-?$' >"$dir/log" &&
    fail "files that were left behind, or went with the packages"
echo "bare_root: ok: $(ls "$root/debs" | tr '\n' ' ')"
