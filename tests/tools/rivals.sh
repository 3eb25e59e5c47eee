#!/bin/bash
# rivals -- tec run --rival: a function of a shared library runs in the place of a kernel where it is faster, in functions, models
# and programs; one that computes something else, and all that is not there, is refused by name.
set -eu
: "${TEC:?}" "${TEC_BUILD_DIR:?}"
[ -z "${TEC_SANITIZE-}" ] || exit 77 # the library is built without the sanitizer
include=$PWD/include
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "rivals: $*" >&2
    [ ! -f out ] || cat out >&2
    exit 1
}
refuses() { # words, then the value of --rival
    if "$TEC" run slow.tec --dim n=2 --repeat 1 --rival "$2" >out 2>&1; then fail "'$2' is taken"; fi
    grep -qF -- "$1" out || fail "'$2' does not say '$1'"
}

# A row times the sum of W: the kernel adds up 20,000 products for each row, the rival adds up W once. The rival's results are
# larger by one in ten thousand, which is within the tolerance, so that they can be told from the kernel's.
cat >slow.te <<'TE'
def slow(n, X: f32[n], W: f32[20000]) where n >= 1 {
  Y[i] = sum[k](X[i] * W[k])
  return Y
}
TE
cat >rival.c <<'C'
#include "tec/kernel.h"

int32_t quick(const tec_env *env, void *const *args, const int64_t *dims)
{
    double sum = 0;

    (void)env;
    for (int k = 0; k < 20000; k++)
        sum += ((const float *)args[1])[k];
    for (int64_t i = 0; i < dims[0]; i++)
        ((float *)args[2])[i] = (float)(((const float *)args[0])[i] * sum * 1.0001);
    return 0;
}

int32_t wrong(const tec_env *env, void *const *args, const int64_t *dims)
{
    quick(env, args, dims);
    ((float *)args[2])[dims[0] - 1] += 1;
    return 0;
}
C
cc -shared -fPIC -O2 -I "$include" rival.c -o rival.so || exit 77
"$TEC" te slow.te --threads 1 -o slow.tec 2>out
/usr/bin/python3 - <<'PY'
import numpy as np
np.save('x.npy', np.random.default_rng(1).random(200, np.float32) + 1)
np.save('w.npy', np.random.default_rng(2).random(20000, np.float32))
PY
ratio() { # of the results of two folders
    /usr/bin/python3 - "$1" "$2" <<'PY'
import glob
import sys

import numpy as np
a, b = (np.load(glob.glob(folder + '/*.npy')[0]).astype(float) for folder in sys.argv[1:])
print('%.5f' % np.mean(a / b))
PY
}
inputs=(--input X=x.npy --input W=w.npy --repeat 1)
"$TEC" run slow.tec "${inputs[@]}" --out plain >out 2>&1 || fail "plain"
"$TEC" run slow.tec "${inputs[@]}" --out quick --rival 'slow=rival.so:quick@64,256' >out 2>&1 || fail "with a rival"
grep -qF "'quick' of rival.so is faster than kernel 'slow' at 2 of the extents measured" out || fail "is not faster"
[ "$(ratio quick plain)" = 1.00010 ] || fail "the rival did not run: $(ratio quick plain)"
[ "$(ratio plain plain)" = 1.00000 ] || fail "the kernel is a rival"

refuses "--rival slow=rival.so:wrong: slow: the function gives another 'Y' than the kernel for 1" slow=rival.so:wrong
refuses "has no function 'none'" slow=rival.so:none
refuses "none.so: error: cannot be loaded" slow=none.so:quick
refuses "has no function 'other'" other=rival.so:quick
for text in slow slow=rival.so slow=rival.so: =rival.so:quick slow=:quick slow=rival.so:@1; do
    refuses "--rival $text: expected a kernel, a file and a function: KERNEL=FILE.so:FUNCTION" "$text"
done
for text in slow=rival.so:quick@ slow=rival.so:quick@0 slow=rival.so:quick@1,x; do
    refuses "--rival $text: expected up to 64 extents of at least 1 behind '@'" "$text"
done
refuses "expected rising extents" slow=rival.so:quick@8,1
if "$TEC" run slow.tec --rpc 127.0.0.1:1 --rival slow=rival.so:quick >out 2>&1; then fail "far away"; fi
grep -qF -- "--rival is for this machine" out || fail "says nothing of far away"
echo "rivals: ok"
