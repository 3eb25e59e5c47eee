#!/bin/bash
# program_inputs -- what `tec run` says of a wrong value of a program, with its path and the line of the declaration.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

finds() { # what is found, then a line for each that is expected
    local found=$1 line
    shift
    for line in "$@"; do
        case $found in
        *"$line"*) ;;
        *) echo "expected: $line"; echo "found: $found"; exit 1 ;;
        esac
    done
}
fails() { # exit status, a line of the message, another, then the words of the command
    local status=$1 first=$2 second=$3 found
    shift 3
    found=$("$TEC" "$@" 2>&1) && { echo "expected '$first', but tec $* succeeded"; exit 1; } || [ $? = "$status" ]
    finds "$found" "$first" "$second"
}

# ---- values in values ----

cat >sum.tecp <<'TECP'
type Pair = Pair((f32[2], i64), f32[?])
type Tree =
  Leaf(Pair)
  | Node(Tree, List[Tree])

def main(
  more: bool,
  t: Tree
) -> (Tree, bool) { if more { main(1 > 2, t) } else { (t, more) } }
TECP
"$TEC" compile sum.tecp -o sum.tec --quiet
echo true >more.json
wrong() { # JSON of the tree, a line of the message, another
    echo "$1" >t.json
    fails 1 "$2" "$3" run sum.tec --repeat 1 --input more=more.json --input t=t.json
}
leaf='{"Leaf": [{"Pair": [[[1, 2], 3], [4]]}]}'
echo "{\"Node\": [$leaf, [$leaf, $leaf]]}" >t.json
found=$("$TEC" run sum.tec --repeat 1 --input more=more.json --input t=t.json)
finds "$found" '[{"Node": [{"Leaf": [{"Pair": [[[1, 2], 3], [4]]}]}, {"Cons": ['

wrong '{"Leaf": [{"Pair": [[[1, 2, 3], 3], [4]]}]}' \
    't.json: error: t.Leaf[0].Pair[0][0]: expected f32[2], found f32[3]' "sum.tecp:1: note: 'Pair' is declared here"
wrong '{"Leaf": [{"Pair": [[[1, 2], 0.5], [4]]}]}' \
    't.json: error: t.Leaf[0].Pair[0][1]: expected a value of i64, found 0.5' "sum.tecp:1: note: 'Pair' is declared here"
wrong '{"Leaf": [7]}' \
    "t.json: error: t.Leaf[0]: expected {\"CONSTRUCTOR\": [fields]} of 'Pair', found 7" "sum.tecp:3: note: 'Leaf' is declared here"
wrong "{\"Node\": [$leaf]}" \
    "t.json: error: t.Node: expected an array of 2 values, found [{\"Leaf\"" "sum.tecp:4: note: 'Node' is declared here"
wrong "{\"Node\": [$leaf, [$leaf, {\"Leaf\": [{\"Pair\": [[[1, 2], 3], [true, \"x\"]]}]}]]}" \
    't.json: error: t.Node[1][1].Leaf[0].Pair[1]: expected values of f32 in arrays of equal lengths, nested 1 deep, found "x"' \
    "sum.tecp:1: note: 'Pair' is declared here"
wrong "{\"Node\": [$leaf, {\"Cons\": [$leaf, \"Leaf\"]}]}" \
    "t.json: error: t.Node[1].Cons[1]: expected {\"CONSTRUCTOR\": [fields]} of 'List[Tree]', found \"Leaf\"" "sum.tecp:4: note: 'Node' is declared here"
wrong '{"Leaf": [{"Pair": [["gone.npy", 3], [4]]}]}' 'gone.npy: cannot open it' 't.json: note: t.Leaf[0].Pair[0][0] is read from that file'
wrong '"Branch"' "t.json: error: t: expected {\"CONSTRUCTOR\": [fields]} of 'Tree', found \"Branch\"" \
    "sum.tecp:8: note: input 't' is declared here"

# The middle of a long path is left out.
deep=$leaf
for i in {1..12}; do deep="{\"Node\": [$deep, []]}"; done
wrong "${deep/3/0.5}" \
    't.json: error: t.Node[0].Node[0].Node[0]...Node[0].Node[0].Node[0].Leaf[0].Pair[0][1]: expected a value of i64' ''

# ---- the depth of JSON ----

cat >chain.tecp <<'TECP'
type Chain = End | Link(Chain)
def main(c: Chain) -> Chain { match c { End => End Link(rest) => main(rest) } }
TECP
"$TEC" compile chain.tecp -o chain.tec --quiet
chain() { # how many links
    printf '{"Link":\n[%.0s' $(seq "$1") >c.json
    printf '"End"' >>c.json
    printf ']}%.0s' $(seq "$1") >>c.json
}
chain 500
[ "$("$TEC" run chain.tec --repeat 1 --input c=c.json | head -n 1)" = '"End"' ]
chain 501
fails 1 'c.json:501: error: the values are nested 1002 deep; JSON files are read to a depth of 1000, the limit of cJSON' \
    'write a list as an array, [1, 2, 3], or make deeper values by the C API (tec_object_data)' \
    run chain.tec --input c=c.json
printf '{"Link": [\n"]]]]\\"{{{", oops]}' >c.json
fails 1 "c.json:2: error: the text is not JSON from 'oops]}' on" '' run chain.tec --input c=c.json
printf '{"Link": [\n"End"' >c.json
fails 1 'c.json:2: error: the text is not JSON: it ends too early' '' run chain.tec --input c=c.json
printf '{"Link": ["End"} , 3\n' >c.json
fails 1 "c.json:1: error: the text is not JSON from '} , 3' on" '' run chain.tec --input c=c.json
printf '\n' >c.json
fails 1 'c.json:1: error: the text is not JSON: it ends too early' '' run chain.tec --input c=c.json

echo "program_inputs: ok"
