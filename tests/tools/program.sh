#!/bin/bash
# program -- a program from its text to its result: compile, inspect, run with values as JSON; what is wrong with a value
# or ends a run is told.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >sum.tecp <<'TECP'
type Tree = Leaf(f32[2]) | Node(Tree, Tree)

def main(t: Tree, more: bool) -> (f32[2], Tree) {
  match t {
    Leaf(x) => (if more { x * 2 } else { x }, t)
    Node(l, r) => {
      let (a, m) = main(l, more)
      let (b, n) = main(r, more)
      (a + b, Node(n, m))
    }
  }
}
TECP
"$TEC" compile sum.tecp -o sum.tec --quiet

# The whole bytecode as text: what the compiler makes of a program changes only where somebody wants that.
"$TEC" inspect --bytecode sum.tec | sed -n '/^function @/,/^[0-9]* constants/p' >found
cat >expected <<'TEXT'
function @main: 2 parameters, 19 registers
  line 4
      0  r2 = get_tag r0
      3  switch r2 (L8, L50)
      8  r3 = get_field r0 0 0
  line 5
     13  r4 = scalar r1
     16  if r4 L20 L38
     20  r6 = new_tensor (2)
     24  invoke_packed kernel 0 () (r3, r6)
     30  r5 = move r6
     33  free (r6)
     36  goto L41
     38  r5 = move r3
     41  r7 = alloc_adt 0 (r5, r0)
     47  ret (r7)
     50  r8 = get_field r0 1 0
     55  r9 = get_field r0 1 1
  line 7
     60  r10 = invoke @main (r8, r1)
     67  free (r8)
     70  r11 = get_field r10 0 0
     75  r12 = get_field r10 0 1
     80  free (r10)
  line 8
     83  r13 = invoke @main (r9, r1)
     90  free (r9)
     93  r14 = get_field r13 0 0
     98  r15 = get_field r13 0 1
    103  free (r13)
  line 9
    106  r16 = new_tensor (2)
    110  invoke_packed kernel 1 () (r11, r14, r16)
    117  r17 = alloc_adt 1 (r15, r12)
    123  free (r12, r15)
    127  r18 = alloc_adt 0 (r16, r17)
    133  ret (r18)
0 constants
TEXT
diff -u expected found

expect() { # result, then the options of tec run
    local result=$1
    shift
    found=$("$TEC" run sum.tec --repeat 1 "$@" 2>&1) || true
    case $found in
    *"$result"*) ;;
    *) echo "expected: $result"; echo "found: $found"; exit 1 ;;
    esac
}

echo '{"Node": [{"Leaf": [[1, 2]]}, {"Node": [{"Leaf": [[3, 4]]}, {"Leaf": [[5, -6]]}]}]}' >t.json
echo true >more.json
echo '{"Node": [{"Leaf": [[1, 2, 3]]}, {"Leaf": [[1, 2]]}]}' >wrong.json
echo '{"Branch": []}' >branch.json
expect '[[18, 0], {"Node": [{"Node": [{"Leaf": [[5, -6]]}, {"Leaf": [[3, 4]]}]}, {"Leaf": [[1, 2]]}]}]' \
    --input t=t.json --input more=more.json
expect "input 't' (Tree) has no value: give it with --input t=FILE.json" --input more=more.json
expect "input 'more' (bool) has no value: give it with --input more=FILE (.json, .npy or .pb)" --input t=t.json
expect "the program has no input 'x'" --input x=t.json
expect "t.Node[0].Leaf[0]: expected f32[2], found f32[3]" --input t=wrong.json --input more=more.json
expect "expected {\"CONSTRUCTOR\": [fields]} of 'Tree', found {\"Branch\":[]}" --input t=branch.json --input more=more.json
expect "sum.tecp:7: in 'main': calls nest deeper than the limit of 1" --input t=t.json --input more=more.json --max-depth 1
expect "--max-bytes: expected a number from 1 on, found '0'" --input t=t.json --input more=more.json --max-bytes 0
expect '[[18, 0], {"Node"' --input t=t.json --input more=more.json --max-bytes 6000000000 --max-steps 6000000000
expect "the limit of 20 steps is reached" --input t=t.json --input more=more.json --max-steps 20
"$TEC" run sum.tec --input t=t.json --input more=more.json --out out --repeat 1 >/dev/null
grep -q '^\[\[18, 0\], {"Node"' out/result.json

# Where the time goes, as a table and as JSON.
"$TEC" run sum.tec --input t=t.json --input more=more.json --out out --repeat 3 --profile >profile
grep -qE '^ .* kernel +mul' profile && grep -qE '^ .* memory +new_tensor' profile || { cat profile; exit 1; }
tail -n 1 profile | grep -qE '^memory of the last run: [1-9][0-9]* storages \([1-9][0-9]* bytes\), [0-9]+ objects from the system, peak [1-9][0-9]* bytes, 0 bytes copied to extend tensors$' || { cat profile; exit 1; }
tail -n 2 profile | head -n 1 | grep -qE '^kernel [0-9.]+ %, shape kernel 0.0 %, memory [0-9.]+ %, control [0-9.]+ %$' || { cat profile; exit 1; }
"$TEC" run sum.tec --input t=t.json --input more=more.json --out out --repeat 3 --profile --json |
    /usr/bin/python3 -c 'import json, sys
profile = json.load(sys.stdin)
assert profile["memory"]["peak_bytes"] > 0 and abs(sum(profile["shares"].values()) - 1) < 1e-6 and {r["group"] for r in profile["rows"]} == {"kernel", "memory", "control"}'

# Random programs, by the interpreter and by the VM.
"$TEC" fuzz --programs --cases 6 --seed 3 >log || { cat log; exit 1; }
grep -q '^6 programs, 0 findings$' log
grep -q '^cases with each instruction:.* tail [1-9]' log
grep -q '^cases that each pass changed:.* bounded [1-9]' log
echo "program: ok"
