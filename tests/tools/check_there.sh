#!/bin/bash
# check_there -- tec check and tec fuzz on devices far away: of a server that is named and of a tracker's pool; models with
# control flow among them. The counts are those of this machine; what does not go together is said; the fuzzer
# finds a server whose results are wrong.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
keys=$dir/pool.keys
pids=()

stop_all() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap stop_all EXIT

fail() {
    echo "check_there: $*" >&2
    exit 1
}

until_says() {
    for _ in $(seq 300); do
        grep -qF -- "$1" "$2" 2>/dev/null && return
        sleep 0.1
    done
    fail "'$1' was not said in $2: $(cat "$2")"
}

# refuses WORDS OPTIONS...: a wrong use, which says so.
refuses() {
    local words=$1
    shift
    if "$TEC" check "$@" case >"$dir/out" 2>&1; then fail "not refused: $*"; fi
    grep -qF -- "$words" "$dir/out" || fail "'$*' does not say '$words': $(cat "$dir/out")"
}

"$TEC" keys --key-file "$keys" --roles submit,serve,administer --users '*' new >"$dir/out"
"$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --key-file "$keys" --state "$dir/tracker.db" >"$dir/tracker.out" 2>"$dir/tracker.log" &
pids+=($!)
until_says "ready at port" "$dir/tracker.out"
tracker=127.0.0.1:$(sed -n 's/.*ready at port \([0-9]*\).*/\1/p' "$dir/tracker.out")
mkdir "$dir/pool" "$dir/alone"
"$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --tracker "$tracker" --device-class desk --folder "$dir/pool" \
    >"$dir/pool.out" 2>"$dir/pool.log" &
pids+=($!)
"$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --folder "$dir/alone" >"$dir/alone.out" 2>"$dir/alone.log" &
pids+=($!)
until_says "clients can lease its devices" "$dir/pool.log"
until_says "listening on" "$dir/alone.out"
alone=$(sed -n 's/.*listening on //p' "$dir/alone.out")

refuses "give one of them" --rpc "$alone" --tracker "$tracker" --device-class desk
refuses "--tracker needs --device-class" --tracker "$tracker"
refuses "--device-class, --user, --job, --priority and --wait are for --tracker" --device-class desk
refuses "--key-file is for --rpc and --tracker" --key-file "$keys"
refuses "there is no device class 'nope'" --tracker "$tracker" --key-file "$keys" --device-class nope

# The control flow that ONNX has, and what runs without it.
suite=$(dirname "$(dpkg -L libonnx-testdata | grep -m1 'node/test_relu$')")
cases="test_relu test_matmul_3d test_if test_if_seq test_loop11 test_scan9_sum test_range_float_type_positive_delta_expanded"
here=$(cd "$suite" && "$TEC" check $cases) || fail "here: $here"
[ "$(tail -1 <<<"$here")" = "6 passed, 0 failed, 1 unsupported" ] || fail "here: $here"
for where in "--rpc $alone" "--tracker $tracker --device-class desk --wait 60"; do
    there=$(cd "$suite" && "$TEC" check $where --key-file "$keys" $cases 2>"$dir/why") || fail "$where: $there $(cat "$dir/why")"
    [ "$(sort <<<"$there")" = "$(sort <<<"$here")" ] || fail "$where: $there; here: $here"
done

# Data without a value for an input whose extents are symbolic.
mkdir -p "$dir/digits/test_data_set_0"
cp tests/models/digits/model.onnx "$dir/digits"
cp tests/models/digits/test_data_set_0/output_0.pb "$dir/digits/test_data_set_0"
"$TEC" check --rpc "$alone" --key-file "$keys" "$dir/digits" >"$dir/out" 2>&1 && fail "passed: $(cat "$dir/out")"
grep -q "the data has no value for input 0, whose shape is symbolic" "$dir/out" || fail "$(cat "$dir/out")"
"$TEC" devices --tracker "$tracker" --key-file "$keys" >"$dir/out"
grep -q "desk .*free" "$dir/out" || fail "a lease was not given back: $(cat "$dir/out")"

# The fuzzer holds what comes from a server against the interpreter.
"$TEC" fuzz --cases 5 --rpc "$alone" --key-file "$keys" >"$dir/out" || fail "$(cat "$dir/out")"
grep -q ", 0 invalid, 0 wrong" "$dir/out" || fail "$(cat "$dir/out")"

# A server whose sessions change one byte of what they send: the fuzzer finds it.
cat >"$dir/flip.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* On the session's socket the head of a piece of data (kind 25) is followed by its bytes in a write of their own. */
ssize_t write(int fd, const void *data, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    static int is_next;
    static unsigned char copy[1 << 20];

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (fd == 3 && is_next && n <= sizeof copy) {
        memcpy(copy, data, n);
        copy[n - 1] ^= 0x40;
        data = copy;
    }
    is_next = fd == 3 && n == 16 && ((const unsigned char *)data)[4] == 25;
    return real(fd, data, n);
}
C
cc -shared -fPIC -O1 "$dir/flip.c" -o "$dir/flip.so" -ldl
printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' "$dir/flip.so" "$TEC_BUILD_DIR/rpc_server" >"$dir/session"
chmod 755 "$dir" "$dir/session" "$dir/flip.so"

# A session for a target of another kind of device is on that device. Its driver keeps code in the session's folder, which others than the owner reach.
"$TEC" fuzz --cases 3 --target opencl --rpc "$alone" --key-file "$keys" --keep "$dir" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
grep -q ", 0 invalid, 0 wrong" "$dir/out" || fail "$(cat "$dir/out")"

mkdir "$dir/faulty"
"$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --folder "$dir/faulty" --session-program "$dir/session" \
    >"$dir/faulty.out" 2>"$dir/faulty.log" &
pids+=($!)
until_says "listening on" "$dir/faulty.out"
faulty=$(sed -n 's/.*listening on //p' "$dir/faulty.out")
if "$TEC" fuzz --cases 3 --keep "$dir" --rpc "$faulty" --key-file "$keys" >"$dir/out" 2>&1; then fail "not found: $(cat "$dir/out")"; fi
grep -q ", 0 invalid, [123] wrong" "$dir/out" || fail "not found: $(cat "$dir/out")"
echo "check_there: ok"
