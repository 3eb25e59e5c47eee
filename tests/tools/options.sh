#!/bin/bash
# options -- every option of every command refuses a value that is empty, given twice, or outside of its kind: exit status 2, and the
# option is named. The options come from the commands' own tables (--list-options), so a new option is tested by being there.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
count=0

# refuse OPTION COMMAND...: exit status 2, naming the option.
refuse() {
    local option=$1 status=0
    shift
    "$@" >"$dir/out" 2>&1 </dev/null || status=$?
    count=$((count + 1))
    if [ $status != 2 ] || ! grep -qF -- "$option" "$dir/out"; then
        echo "options: expected exit status 2 and '$option', found $status from: $*"
        head -3 "$dir/out"
        bad=1
    fi
}

# A value of an option's kind: what its parser accepts, whatever the command says of it later.
good_value() {
    case $1 in
    count | amount | natural | number | decimal) echo 1 ;;
    choice) echo "${2%%|*}" ;;
    target) echo native ;;
    *) echo x=1 ;;
    esac
}

for command in $("$TEC" --help | sed -nE '/^commands:/,/^$/s/^  ([a-z-]+) .*/\1/p'); do
    refuse --no-such-option "$TEC" "$command" --no-such-option
    while read -r option kind value; do
        if [ "$kind" = flag ]; then
            refuse "$option" "$TEC" "$command" "$option=1"
            refuse "$option" "$TEC" "$command" "$option" "$option"
            continue
        fi
        good=$(good_value "$kind" "$value")
        refuse "$option" "$TEC" "$command" "$option"
        refuse "$option" "$TEC" "$command" "$option" ""
        refuse "$option" "$TEC" "$command" "$option="
        [ "$kind" = list ] || refuse "$option" "$TEC" "$command" "$option" "$good" "$option" "$good"
        case $kind in
        count) wrong="0 -3 x 1.5 1x 1000000001 99999999999999999999" ;;
        amount) wrong="0 -3 x 1.5 1x 99999999999999999999" ;;
        natural) wrong="-1 x 1.5 1000000001 99999999999999999999" ;;
        number) wrong="x 1.5 99999999999999999999" ;;
        decimal) wrong="-0.5 x nan 1e400" ;;
        target) wrong="no-such-kind llvm:x" ;;
        choice) wrong="no-such-word ${value%%|*}x |" ;;
        *) wrong= ;;
        esac
        for w in $wrong; do
            refuse "$option" "$TEC" "$command" "$option" "$w"
        done
    done < <("$TEC" "$command" --list-options)
done
[ $count -gt 300 ] || { echo "options: only $count refusals were tried"; bad=1; }

# One grammar of --dim in every command that has it.
printf 'def f(n, A: f32[n]) {\n  C[i] = A[i] * 2.0\n  return C\n}\n' >"$dir/f.te"
"$TEC" te "$dir/f.te" -o "$dir/f.tec"
"$TEC" compile tests/models/digits/model.onnx -o "$dir/digits.tec" --quiet
for line in "te $dir/f.te" "run $dir/f.tec" "compile -o $dir/x.tec tests/models/digits/model.onnx" "tune --records $dir/r.db $dir/f.te"; do
    for wrong in n n= =3 n=x n=-1 n=1.5; do
        refuse "${wrong#*=}" "$TEC" $line --dim "$wrong"
    done
    refuse n "$TEC" $line --dim n=1 --dim n=2
done

# fails STATUS WORDS COMMAND...: ends with this status and names what nothing has; names: with status 1, misuses: with 2.
fails() {
    local expected=$1 words=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>&1 || status=$?
    if [ $status != "$expected" ] || ! grep -qF -- "$words" "$dir/out"; then
        echo "options: expected exit status $expected and '$words', found $status from: $*"
        head -3 "$dir/out"
        bad=1
    fi
}
names() { fails 1 "$@"; }
misuses() { fails 2 "$@"; }
misuses "'f' has no symbol 'rows'; its symbols are n" "$TEC" te "$dir/f.te" --dim rows=3
misuses "--dim rows: no definition has a symbol of this name; the symbols are n" "$TEC" tune "$dir/f.te" --records "$dir/r.db" --dim n=4 --dim rows=3
misuses "--dim rows: no kernel has a symbol of this name; the symbols are n" "$TEC" tune "$dir/f.te" --kernels --dim n=4,8 --dim rows=3,4
misuses "--dim rows: expected a symbol or INPUT.AXIS; the symbols are n" "$TEC" run "$dir/f.tec" --dim rows=3
for line in "compile -o $dir/x.tec" "tune --records $dir/r.db" "tune --kernels" "inspect --graph read"; do
    misuses "a value is given for dimension 'bacth', but the model leaves only these open: 'batch', 'input.0'; did you mean 'batch'?" \
        "$TEC" $line tests/models/digits/model.onnx --dim bacth=3
done
misuses "--dim is for --node and --graph" "$TEC" inspect tests/models/digits/model.onnx --dim batch=3
printf 'main(x: f32[n]) = x + x\n' >"$dir/p.tecp"
for line in "compile -o $dir/x.tec" "tune --kernels"; do
    misuses "a program's extents come from its arguments" "$TEC" $line "$dir/p.tecp" --dim n=3
done
names "--dim input.1=2: expected 1 for dimension 1 of 'input', found 2" "$TEC" run "$dir/digits.tec" --dim input.1=2
names "sets 'batch' to 2, but it is already set to 3" "$TEC" run "$dir/digits.tec" --dim batch=3 --dim input.0=2
names "there is no input 'A'; expected one of the inputs input" "$TEC" run "$dir/digits.tec" --input A=nowhere.npy
names "there is no function 'g'; expected one of the module's functions: f" "$TEC" run "$dir/f.tec" --function g

# What is written to a full disk or a closed descriptor is no success.
if [ -e /dev/full ]; then
    names "standard output could not be written" bash -c '"$0" te "$1" --emit tree >/dev/full' "$TEC" "$dir/f.te"
    names "standard output could not be written" bash -c '"$0" te "$1" -o - >/dev/full' "$TEC" "$dir/f.te"
    ! grep "without a reason" "$dir/out" || bad=1
    names "standard output could not be written" bash -c '"$0" --help >/dev/full' "$TEC"
fi
names "standard output could not be written" bash -c '"$0" te "$1" --emit tree >&-' "$TEC" "$dir/f.te"

# succeeds WORDS COMMAND...
succeeds() {
    local words=$1
    shift
    "$@" >"$dir/out" 2>&1 && grep -qF -- "$words" "$dir/out" || { echo "options: '$*' should succeed and say '$words'"; head -3 "$dir/out"; bad=1; }
}
succeeds "'f' and its schedule" "$TEC" te "$dir/f.te"
succeeds "usage: tec run" "$TEC" help run
succeeds "LLVM 19" "$TEC" --version
succeeds "(5 measurements)" "$TEC" run "$dir/digits.tec" --dim batch=8 --repeat 5 --warmup 0
succeeds "a second" "$TEC" run "$dir/f.tec" --dim n=1000 --duration 0.01 --function f
"$TEC" compile tests/models/digits/model.onnx -o - --quiet >"$dir/piped.tec"
cmp "$dir/piped.tec" "$dir/digits.tec" || { echo "options: -o - differs from -o FILE"; bad=1; }
[ $bad = 0 ] && echo "options: $count refusals ok"
exit $bad
