#!/bin/bash
# te_errors -- what `tec te` says of a slip: the file and line once, what is wrong, and the name that was meant.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
bad=0

# says PLACE MESSAGE HEAD BODY STEP: of a definition with this parameter list and body, and a schedule of one
# step. PLACE is LINE:COLUMN; the line of the file and a caret below the column follow the message.
says() {
    printf 'def f(%s) {\n  C[i] = %s\n  return C\n}\nschedule f {\n  %s\n}\n' "$3" "$4" "$5" >k.te
    line=${1%:*} column=${1#*:}
    expected="tec te: k.te:$1: error: $2
$(sed -n "${line}p" k.te)
$(printf '%*s' "$column" ^)"
    if "$TEC" te k.te >out 2>said; then
        echo "te_errors: accepted: $3 $4 $5"
        bad=1
    elif [ "$(cat said)" != "$expected" ]; then
        printf 'te_errors: expected: %s\n              found: %s\n' "$expected" "$(cat said)"
        bad=1
    fi
}

head='n, A: f32[n, 8]'
says 2:10 "'sum' reduces over axes, which stand in brackets before the value, as in sum[k](A[i, k])" \
    "$head" 'sum(A[i, k], k)' 'unroll(C.k)'
says 2:10 "unknown function 'tahn'; did you mean 'tanh'?" "$head" 'tahn(A[i, 0])' 'unroll(C.i)'
says 2:10 "unknown buffer 'wieght'; did you mean 'weight'?" 'n, weight: f32[n, 8]' 'wieght[i, 0]' 'unroll(C.i)'
says 2:12 "unknown variable 'rwos'; did you mean 'rows'?" 'n, rows, A: f32[n, 8]' 'A[rwos, 0]' 'unroll(C.i)'
says 1:13 "expected a type, found 'float32'; did you mean 'f32'?" 'n, A: float32[n, 8]' 'A[i, 0]' 'unroll(C.i)'
says 1:13 "expected a type, found 'f23'; did you mean 'f32'?" 'n, A: f23[n, 8]' 'A[i, 0]' 'unroll(C.i)'
says 1:13 "expected a type, found '['" 'n, A: [n, 8]' 'A[i, 0]' 'unroll(C.i)'
says 6:3 "there is no primitive 'vectorise'; did you mean 'vectorize'?" "$head" 'A[i, 0]' 'vectorise(C.i)'
says 6:3 "split(C.ii, _, 4): there is no loop 'C.ii'; did you mean 'C.i'?" "$head" 'A[i, 0]' 'split(C.ii, _, 4)'
says 6:3 "compute_inline(CC): there is no block 'CC'" "$head" 'A[i, 0]' 'compute_inline(CC)'
says 6:3 "cache_read(wieght, local): there is no buffer 'wieght'; did you mean 'weight'?" \
    'n, weight: f32[n, 8]' 'weight[i, 0]' 'cache_read(wieght, local)'
says 6:3 "split(elsewhere, _, 4): there is no loop 'elsewhere'" "$head" 'A[i, 0]' 'split(elsewhere, _, 4)'

# A schedule on one line has its columns too, and several errors are told in one run.
cat >k.te <<'EOF'
def f(n, A: f32[n]) {
  B[i] = tahn(A[i])
  C[i] = B[i] * 2.0
  D[i] = A[i] + E[i]
  return C, D
}
def g(A: f32[4]) { B[i] = A[i] return B }
schedule g { splitt(B.i, _, 2) }
EOF
"$TEC" te --name g k.te >out 2>said && bad=1
cat >expected <<'EOF'
tec te: k.te:2:10: error: unknown function 'tahn'; did you mean 'tanh'?
  B[i] = tahn(A[i])
         ^
k.te:4:17: error: unknown buffer 'E'
  D[i] = A[i] + E[i]
                ^
EOF
cmp -s said expected || { diff said expected; bad=1; }
sed -i 1,6d k.te
"$TEC" te k.te >out 2>said && bad=1
grep -q "^tec te: k.te:2:14: error: there is no primitive 'splitt'; did you mean 'split'?" said || { cat said; bad=1; }
grep -q '^schedule g { splitt(B.i, _, 2)' said || { cat said; bad=1; }

# A schedule is read to its end: what mentions blocks of a refused step is left out, other errors are told.
cat >k.te <<'EOF'
def f(n, A: f32[n, 8]) {
  C[i, j] = A[i, j]
  D[i, j] = C[i, j] + 1.0
  E[i, j] = D[i, j] + C[i, j]
  return E
}
schedule f {
  x, y = splitt(C.i, _, 4)
  unroll(y)
  unroll(C.i.0)
  unroll(D.k)
  compute_at(C, D.i)
  parallel(E.i, 3)
}
EOF
cat >expected <<'EOF'
tec te: k.te:8:3: error: there is no primitive 'splitt'; did you mean 'split'?
  x, y = splitt(C.i, _, 4)
  ^
k.te:11:3: error: unroll(D.k): there is no loop 'D.k'; did you mean 'D.i'?
  unroll(D.k)
  ^
k.te:13:15: error: expected ')', found ','
  parallel(E.i, 3)
              ^
EOF
"$TEC" te k.te >out 2>said && bad=1
cmp -s said expected || { diff said expected; bad=1; }
[ $bad = 0 ] && echo "te_errors: ok"
exit $bad
