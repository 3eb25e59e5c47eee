#!/bin/bash
# te_check -- `tec te --check` compares a kernel with its definition: at sizes that fit the conditions, at those of --dim and of files, by the
# interpreter or by plain loops; a kernel that differs, a file that does not fit and an index outside are told.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# says STATUS TEXT OPERANDS...: of tec te.
says() {
    local want=$1 text=$2 status=0
    shift 2
    "$TEC" te "$@" >out 2>&1 || status=$?
    [ $status = "$want" ] && grep -qE -- "$text" out && return
    echo "te_check: te $*: expected status $want and '$text', found status $status:"
    cat out
    exit 1
}

cat >f.te <<'END'
def f(n, m, s: f32, A: f32[n, m], I: i32[n]) where m >= 8 {
  C[i] = sum[k](A[i, k] * s) + f32(I[i])
  return C
}
schedule f { split(C.i, _, 4)  vectorize(C.i.1) }
END
says 0 '^f: same results as the interpreter, at n = [0-9]+, m = ([89]|1[0-9])(; n = [0-9]+, m = ([89]|1[0-9])){3}$' f.te --check
says 0 '^f: same results as the interpreter, at m = [0-9]+; ' f.te --check --dim n=5
says 0 '"same":true,"oracle":"the interpreter","sizes":"n = ' f.te --check --json

# A .npy file: NAME DTYPE ROWS COLUMNS VALUE.
array() {
    python3 - "$@" <<'END'
import struct, sys
name, kind, rows, columns, value = sys.argv[1:]
shape = [int(n) for n in (rows, columns) if n != "-"]
count = shape[0] * (shape[1] if len(shape) > 1 else 1)
head = ("{'descr': '<%s', 'fortran_order': False, 'shape': (%s,)}" % (kind, ", ".join(map(str, shape)))).encode()
head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
letter = {"f4": "f", "f8": "d", "i4": "i"}[kind]
values = struct.pack("<%d%s" % (count, letter), *[(float if letter in "fd" else int)(value)] * count)
open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + values)
END
}
array a.npy f4 3 9 0.5
array wide.npy f8 3 9 0.5
says 0 '^f: same results as the interpreter, at n = 3, m = 9$' f.te --check --input A=a.npy
says 0 '^f: min .*measurements' f.te --time --input A=a.npy
says 1 "input 'A': expected f32\[3, 9\], found f64\[3, 9\]" f.te --check --input A=wide.npy
says 1 "a.npy: expected 4 for dimension 0 of 'A', found 3" f.te --check --input A=a.npy --dim n=4
says 1 "there is no input 'B'; expected one of the inputs A, I, s" f.te --check --input B=a.npy
says 1 "no value was given for 'n'" f.te --time
says 2 "give --time or --check, too" f.te --input A=a.npy

# The data decides an index: the interpreter tells it before the kernel runs.
printf 'def g(A: f32[4], I: i32[3]) {\n  C[i] = A[I[i]]\n  return C\n}\n' >g.te
array inside.npy i4 3 - 3
array outside.npy i4 3 - 4
says 0 '^g: same results as the interpreter$' g.te --check --input I=inside.npy
says 1 "read of 'A' out of bounds: index 0 is 4, extent is 4" g.te --check --input I=outside.npy

# Too much for the interpreter.
printf 'def h(A: f32[400, 400], B: f32[400, 400]) {\n  C[i, j] = sum[k](A[i, k] * B[k, j])\n  return C\n}\n' >h.te
says 0 '^h: same results as plain loops on this CPU$' h.te --check

# The text of an intrinsic begins with 1 where its meaning begins with 0.
cat >wrong.te <<'END'
intrinsic dot4(a: i32[4], b: i32[4]) {
  c[i: 1] = sum[k](a[k] * b[k])
  return c
  reset "c[0] = 1"
  update "for k in 0..4 { c[0] = c[0] + a[k] * b[k] }"
}
def w(n, A: i32[n, 8], x: i32[8]) {
  y[i] = sum[k](A[i, k] * x[k])
  return y
}
schedule w {
  ko, ki = split(y.k, _, 4)
  tensorize(ki, dot4)
}
END
says 1 "^w: at n = [0-9]+, result 'y': " wrong.te --check
echo "te_check: ok"
