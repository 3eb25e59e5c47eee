#!/bin/bash
# wheel -- builds the wheel, installs it into an environment of its own without an index, and runs python/tests and the README's
# example there, outside of the project.
#
# Needs TEC, the program, and TEC_BUILD_DIR, a finished build. TEC_PYTHONS names the interpreters (python3 without it); each must
# have NumPy. A sanitizer's runtime cannot be loaded into a plain interpreter, so such builds are left out.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
[ -z "${TEC_SANITIZE-}" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$PWD

wheel=$(scripts/wheel --out "$dir" --build "$TEC_BUILD_DIR")
unzip_list=$(/usr/bin/python3 -m zipfile -l "$wheel")
grep -q 'tec/libtec_runtime.so' <<<"$unzip_list" || { echo "wheel: there is no library in $wheel"; exit 1; }
[ "$(stat -c %s "$wheel")" -lt 400000 ] || { echo "wheel: $wheel is larger than 400 kB"; exit 1; }

cat >"$dir/product.te" <<'TE'
def product(n, A: f32[n, 4], B: f32[4, 3]) where n >= 1 {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
TE
"$TEC" te "$dir/product.te" -o "$dir/product.tec" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
"$TEC" compile tests/models/digits/model.onnx -o "$dir/digits.tec" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
sed -n '/^```python$/,/^```$/p' python/README.md | sed '/^```$/,$d; 1d' >"$dir/readme.py"

for python in ${TEC_PYTHONS:-/usr/bin/python3}; do
    environment=$dir/$(basename "$python").$$
    "$python" -m venv --system-site-packages "$environment"
    "$environment/bin/pip" install --quiet --no-index --no-deps "$wheel"
    (
        cd "$dir"
        export TEC_TEST_MODULE=$dir/digits.tec TEC_TEST_FUNCTION=$dir/product.tec TEC_TEST_MODEL=$root/tests/models/digits/model.onnx
        TEC_LIBRARY=$(readlink -f "$root/$TEC_BUILD_DIR/libtec.so" 2>/dev/null || readlink -f "$TEC_BUILD_DIR/libtec.so")
        export TEC_LIBRARY
        if "$TEC" devices | grep -q '^opencl:0'; then export TEC_TEST_OPENCL=1; fi
        "$environment/bin/python" -m unittest discover "$root/python/tests" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
        "$environment/bin/python" readme.py >"$dir/said"
        grep -q 'f32\[batch, 1, 8, 8\]' "$dir/said" || { cat "$dir/said"; exit 1; }
    )
    rm -rf "$environment"
done
echo "wheel: ok"
