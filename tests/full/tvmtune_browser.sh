#!/bin/bash
# tvmtune_browser -- the daemon's page in headless Chromium, with a real job: door, submit, watch, compare, pause, records, devices,
# light and dark, cancel; no error in the console, no request to elsewhere. Chromium must be there (scripts/packages --install browser).
#
#   TEC_PICTURES=docs/pictures tests/full/tvmtune_browser.sh
#
# writes the pictures of docs/tuning-daemon.md, too. The first job is a model then, with trials enough to show gains: a quiet machine and a
# release build, some minutes.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    tail -n 20 "$dir/log"
    echo "tvmtune_browser: $*" >&2
    exit 1
}

command -v chromium >"$dir/out" || { echo "tvmtune_browser: no chromium here: scripts/packages --install browser" >&2; exit 1; }
"$tvmtune" serve --state "$state" --jobs 2 2>"$dir/log" &
daemon=$!
for _ in $(seq 100); do
    [ ! -s "$state/port" ] || break
    sleep 0.1
done
cat >"$dir/layers.te" <<'END'
def product(A: f32[64, 96], B: f32[96, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
def scale(A: f32[4096]) {
  B[i] = A[i] * 2.0
  return B
}
END
sed -n '1,4p' "$dir/layers.te" | sed 's/96/160/g' >"$dir/<img src=x onerror=alert(1)>.te"
job=("$dir/layers.te" --trials 16)
[ -z "${TEC_PICTURES:-}" ] || job=(tests/models/digits/model.onnx --dim batch=1 --trials 400)
"$tvmtune" submit --state "$state" "${job[@]}" --threads 1 >"$dir/out" 2>&1 || fail "submit"
timeout 900 "$tvmtune" watch --state "$state" 1 >"$dir/out" 2>&1 || fail "the job does not end as done"
kernels=$("$tvmtune" fetch --state "$state" 1 --file report -o - | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["kernels"]))')
timeout 200 python3 tests/full/tvmtune_browser.py "$dir/profile" "http://127.0.0.1:$(cat "$state/port")/" "$(cat "$state/token")" \
    "$dir/<img src=x onerror=alert(1)>.te" "$kernels" ${TEC_PICTURES:+"$TEC_PICTURES"} || fail "the browser's walk through the page failed"
