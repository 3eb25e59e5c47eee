#!/bin/bash
# disk -- a full disk: jobs are paused with the reason, whether a child or the daemon met it, and go on by themselves when there is
# room. The daemon's folder is a small file system of its own where one can be mounted.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
if [ -z "${TEC_OWN_MOUNTS:-}" ] && unshare -rm true 2>/dev/null; then
    TEC_OWN_MOUNTS=1 exec unshare -rm --propagation private "$0"
fi
dir=$(mktemp -d)
state=$dir/disk/state
daemon= mounted=
mkdir "$dir/disk"
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; [ -z "$mounted" ] || umount -l "$dir/disk"; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "disk: $*" >&2
    exit 1
}

until_says() { # JOB WORDS
    for _ in $(seq 300); do
        "$tvmtune" list --state "$state" "$1" >"$dir/out" 2>&1 || true
        ! grep -qE -- "$2" "$dir/out" || return 0
        sleep 0.1
    done
    fail "job $1 does not say '$2'"
}

# A compiler that meets a full disk once for each file that says so.
cat >"$dir/tec" <<'END2'
#!/bin/bash
here=$(dirname "$0")
case " $* " in *" --kernels "*)
    echo '{"event":"kernel","key":"'"$(md5sum <"$2" | cut -c1-16)"'","target":"t","task":"k","summary":"","uses":1,"codegen":"1"}'
    exit
    ;;
esac
if [ "$1" = tune ]; then
    if grep -q child "$2" && [ ! -e "$here/met" ]; then
        touch "$here/met"
        echo "tec tune: $4: error: database or disk is full" >&2
        exit 1
    fi
    n=0
    while grep -q slow "$2" && [ ! -e "$here/go" ]; do
        n=$((n + 1))
        echo '{"all_trials":'$n'}'
        sleep 0.2
    done
fi
while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done
[ "$1" != -o ] || echo module >"$2"
END2
chmod +x "$dir/tec"
if mount -t tmpfs -o size=2m tmpfs "$dir/disk" 2>"$dir/err"; then
    mounted=1
fi
"$tvmtune" serve --state "$state" --tec "$dir/tec" --memory 0 --log info 2>"$dir/log" &
daemon=$!
for _ in $(seq 100); do
    [ ! -s "$state/port" ] || break
    sleep 0.1
done
echo "child" >"$dir/child.te"
echo "slow" >"$dir/slow.te"

"$tvmtune" submit --state "$state" "$dir/child.te" >"$dir/out" || fail "no submission"
until_says 1 " done "
grep -q "job 1 is paused: waiting for space on the disk: .*database or disk is full" "$dir/log" || fail "job 1 was not paused with the reason"

[ -n "$mounted" ] || { echo "disk: no file system of one's own here: a disk that is full for the daemon is not tested"; exit 0; }
"$tvmtune" submit --state "$state" "$dir/slow.te" >"$dir/out" || fail "no submission"
until_says 2 " running +[1-9]"
! head -c 4m /dev/zero >"$dir/disk/filler" 2>"$dir/err" || fail "the disk is not full"
for _ in $(seq 300); do
    [ "$(grep -c -i "disk is full\|no space left" "$dir/log")" -lt 2 ] || break
    sleep 0.1
done
[ "$(grep -c -i "disk is full\|no space left" "$dir/log")" -ge 2 ] || fail "the daemon does not meet the full disk"
kill -0 $daemon || fail "the daemon ended"
touch "$dir/go"
rm "$dir/disk/filler"
until_says 2 " done "
grep -q "job 2 is paused: waiting for space on the disk" "$dir/log" || fail "job 2 was not paused"
