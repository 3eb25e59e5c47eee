#!/bin/bash
# tune -- a convolution tuned through one tracker for three targets: four servers of this machine, and an emulated board each of
# aarch64 and armhf. Each record names a device of its class; what is compiled with the records runs on all three, with one result.
set -eu
. tests/cross/board.sh

open_room submit,serve
start tracker "$TEC_BUILD_DIR/rpc_tracker" --listen 127.0.0.1:0 --key-file "$keys" --state "$room/tracker.db"
tracker=127.0.0.1:$port
for i in 1 2 3 4; do
    start here$i "$TEC_BUILD_DIR/rpc_server" --listen 127.0.0.1:0 --key-file "$keys" --json --tracker $tracker \
        --device-class here --name here$i
done
for arch in aarch64 armhf; do
    serve_board $arch --tracker $tracker --device-class $arch --name $arch
done
for _ in $(seq 200); do
    "$TEC" devices --tracker $tracker --key-file "$keys" >"$room/said"
    free=$(grep -c '/cpu:0 .* free ' "$room/said") || true
    [ $free -lt 6 ] || break
    sleep 0.1
done
[ $free = 6 ] || fail "not six devices are free: $(cat "$room/said")"

cat >"$room/conv.te" <<'TE'
def conv(X: f32[1, 8, 10, 10], W: f32[8, 8, 3, 3]) {
  Y[n, o, y: 8, x: 8] = sum[c, i, j](X[n, c, y + i, x + j] * W[o, c, i, j])
  return Y
}
TE
# tec_of CLASS COMMAND...: a command of tec on a device of the class
tec_of() {
    "$TEC" "$2" --tracker $tracker --device-class "$1" --key-file "$keys" "${@:3}" >"$room/said" 2>&1 || fail "$*: $(cat "$room/said")"
}
trials=16
for class in here aarch64 armhf; do
    tec_of $class tune "$room/conv.te" --records "$room/tune.db" --trials $trials --tolerance 900
    "$TEC" records export "$room/tune.db" -o "$room/tune.json" >"$room/said" 2>&1 || fail "$class: $(cat "$room/said")"
    target=$(grep -o "llvm [^\"]*-model=$class-[0-9a-f]*" "$room/tune.json" | sort -u)
    [ "$(grep -c . <<<"$target")" = 1 ] || fail "not one target of $class, but '$target'"
    "$TEC" te "$room/conv.te" --records "$room/tune.db" --target "$target" -o "$room/$class.tec" >"$room/said" 2>&1 ||
        fail "$class: $(cat "$room/said")"
    grep -q "'conv' has the schedule of its record" "$room/said" || fail "$class: no schedule of a record: $(cat "$room/said")"
    tec_of $class run "$room/$class.tec" --repeat 1 --out "$room/$class"
done

# The records by their classes, and the results.
python3 - "$room" $trials <<'PY'
import json, math, struct, sys

room, trials = sys.argv[1], int(sys.argv[2])
names = {"here": {f"here{i}/cpu:0" for i in range(1, 5)}, "aarch64": {"aarch64/cpu:0"}, "armhf": {"armhf/cpu:0"}}
found = {of: [] for of in names}
for line in open(f"{room}/tune.json"):
    record = json.loads(line)
    of = next(of for of in names if f"-model={of}-" in record["target"]["text"])
    assert record["device"]["name"] in names[of], (of, record["device"])
    assert f"class {of}" in record["device"]["text"], record["device"]
    found[of].append(record["device"]["name"])
for of, devices in found.items():
    assert len(devices) >= trials, (of, len(devices))
    print(f"{of}: {len(devices)} records, devices: {len(set(devices))}")
assert set(found["here"]) == names["here"], set(found["here"])

def numbers(of):
    data = open(f"{room}/{of}/Y.npy", "rb").read()
    return struct.unpack("<512f", data[-2048:])

for of in "aarch64", "armhf":
    assert any(numbers(of)) and all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(numbers("here"), numbers(of))), of
PY
echo "tune: ok"
