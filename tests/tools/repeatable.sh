#!/bin/bash
# repeatable -- a module does not depend on the folder it is compiled in, the path of its source or
# the time: the files are equal, byte for byte.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$PWD
TEC=$(realpath "$TEC")
mkdir -p "$dir/one" "$dir/other/deeper folder"
cp tests/models/digits/model.onnx "$dir/one/m.onnx"
cat >"$dir/one/k.te" <<'TE'
def product(n, A: f32[n, 64], B: f32[64, 48]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
TE
cp "$dir/one/k.te" "$dir/other/another name.te"

same() {
    cmp "$dir/one/$1" "$dir/other/deeper folder/$1" || { echo "repeatable: two builds of $1 differ"; exit 1; }
}

(cd "$dir/one" && "$TEC" compile m.onnx -o m.tec && "$TEC" te k.te -o k.tec) >"$dir/log" 2>&1 ||
    { cat "$dir/log"; exit 1; }
sleep 1.1
(
    cd "$dir/other/deeper folder"
    "$TEC" compile "$root/tests/models/digits/model.onnx" -o m.tec && "$TEC" te "../another name.te" -o k.tec
) >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
same m.tec
same k.tec
echo "repeatable: ok"
