#!/bin/bash
# json -- tensors as JSON: inputs of a program of operators alone and of a kernel, each element type, and what is wrong in
# them. A source is refused where a module is expected.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fails() {
    message=$1
    shift
    if "$TEC" "$@" >out.txt 2>&1; then
        echo "tec $*: expected the error: $message"
        exit 1
    fi
    grep -qF -- "$message" out.txt || {
        echo "tec $*: expected the error: $message, found:"
        cat out.txt
        exit 1
    }
}

echo 'def main(x: f32[n, 2]) -> f32[n, 2] { x * 2 }' >twice.tecp
"$TEC" compile twice.tecp -o twice.tec --quiet
echo '[[1, 2], [3, 4], ["inf", -0.5]]' >x.json
"$TEC" run twice.tec --input x=x.json --out out --repeat 1 >/dev/null
/usr/bin/python3 - <<'PY'
import glob, numpy
found = numpy.load(glob.glob("out/*.npy")[0])
assert (found == [[2, 4], [6, 8], [numpy.inf, -1]]).all(), found
PY
echo '{"shape": [0, 2], "data": []}' >empty.json
"$TEC" run twice.tec --input x=empty.json --repeat 1 >/dev/null
echo '[[1, 2], [3]]' >ragged.json
fails 'ragged.json: error: expected values of f32 in arrays of equal lengths, nested 2 deep, found [3]' run twice.tec --input x=ragged.json
echo '[[1, "far"]]' >text.json
fails 'nested 2 deep, found "far"' run twice.tec --input x=text.json
echo '[[1, 2' >cut.json
fails 'cut.json:1: error: the text is not JSON: it ends too early' run twice.tec --input x=cut.json

# Each type through a program with control flow, whose results are JSON too: what is read is written.
same() {
    cat >type.tecp <<TECP
def main(more: bool, x: $1[n]) -> ($1[n], bool) { if more { (x, more) } else { main(more, x) } }
TECP
    "$TEC" compile type.tecp -o type.tec --quiet
    echo true >more.json
    echo "$2" >value.json
    "$TEC" run type.tec --input more=more.json --input x=value.json --out out --repeat 1 >/dev/null
    [ "$(cat out/result.json)" = "[$2, true]" ] || {
        echo "$1: expected [$2, true], found $(cat out/result.json)"
        exit 1
    }
}
same f32 '[1.5, -2, "inf", "-inf"]'
same f64 '[0.10000000000000001, "-inf"]'
same f16 '[1.5, -2, 65504]'
same bf16 '[1.5, -2]'
same i8 '[-128, 127]'
same u8 '[0, 255]'
same i32 '[-2147483648, 2147483647]'
same i64 '[-9007199254740992, 9007199254740991]'
same bool '[true, false]'
wrong() {
    cat >type.tecp <<TECP
def main(more: bool, x: $1[n]) -> ($1[n], bool) { if more { (x, more) } else { main(more, x) } }
TECP
    "$TEC" compile type.tecp -o type.tec --quiet
    echo "$2" >value.json
    fails "expected values of $1 in arrays of equal lengths, nested 1 deep, found $3" \
        run type.tec --input more=more.json --input x=value.json
}
wrong f16 '[65504, 65520]' 65520
wrong bf16 '[4e38]' 4e+38
wrong f32 '[1e39]' 1e+39
wrong i8 '[1, 128]' 128
wrong u8 '[-1]' -1
wrong i32 '[0.5]' 0.5
wrong i64 '[1e300]' 1e+300
wrong bool '[2]' 2
echo '{"shape": [-2], "data": []}' >value.json
fails 'expected a shape of 1 extents from 0 on, found [-2]' run type.tec --input more=more.json --input x=value.json
echo '[true]' >more.json
fails 'expected a value of bool, found [true]' run type.tec --input more=more.json --input x=value.json

# A kernel's inputs.
echo 'def f(n, A: i32[n]) { B[i: n] = A[i] + 1  return B }' >f.te
echo '[1, 2, 3]' >a.json
"$TEC" te f.te --check --input A=a.json | grep -q 'same results as the interpreter, at n = 3'

# A source is no module.
fails "twice.tecp: not a module: the file has only 46 bytes; 'tec compile' makes one of it" run twice.tecp
fails "'tec te -o' makes one of it" run f.te
