#!/bin/bash
# run -- the recipes of CONTRIBUTING.md, followed out of tree: what a new thing costs, and that it works.
#
# Each folder beside this script but programs/ is a recipe: the files that it adds. The rows that it adds are here.
# All recipes are applied to one copy of the project. The objects of tables and of new files are compiled there, by
# the copy's own build, and linked in front of the libraries of the build that is tested: no recipe changes its other
# objects. So the test costs seconds.
set -eu
[ -z "${TEC_SANITIZE:-}" ] || { echo "one build type is enough"; exit 77; }
build=$(realpath "$TEC_BUILD_DIR")
recipes=$PWD/tests/recipes
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
copy=$dir/copy
mkdir "$copy"
git ls-files -co --exclude-standard -z | xargs -0 cp -P --parents -t "$copy"
cd "$copy"
objects=()

fail() {
    echo "recipes: $*"
    exit 1
}

# before FILE LINE ROW: the row goes in front of the line that begins so.
before() {
    awk -v line="$2" -v row="$3" '
        index($0, line) == 1 && !done { print row; done = 1 }
        { print }
        END { exit !done }' "$1" >"$dir/new" || fail "$1 has no line '$2'"
    cat "$dir/new" >"$1"
}

# add RECIPE OBJECT...: the files of a recipe, and the objects that its files and rows make.
add() {
    [ ! -d "$recipes/$1" ] || cp -r "$recipes/$1/." .
    shift
    objects+=("$@")
}

# A kind of target: a folder, its room, its row.
add generator targets/kinds.c compiler/generators.c targets/toy/toy.c
before cmake/rooms.txt 'compiler ' 'targets/toy | toy | lower | dl'
before targets/kinds.def '#undef' \
    'TARGET_KIND(toy, toy_codegen, TARGET_HOST | TARGET_CPU, NULL, NULL, "C for the compiler of this machine")'

# An architecture: a file and its row.
add architecture targets/cpus.c targets/llvm/emit.c targets/riscv64.c
before targets/archs.def '#undef' 'TARGET_ARCH(riscv64, RISCV)'

# A pass, an explorer, an operator: a file and its row each. A primitive has an example for its page, too.
add pass lower/pipeline.c lower/toy.c
before lower/passes.def 'LOWER_PASS(finish' \
    'LOWER_PASS(toy, SCALAR, TARGET_FLOATS, 0, "doubling by an addition")'
add explorer autotune/explorer.c autotune/explore_toy.c
before autotune/explorers.def '#undef' 'TUNE_EXPLORER(toy)'
add operator ops/table.c ops/toy.c
before ops/families.def '#undef' 'OP_FAMILY(toy)'
add primitive schedule/step.c fuzz/primitives.c schedule/toy.c
before schedule/primitives.def '#undef' 'SCHED_PRIMITIVE(toy, "loop")'
# Its C function: a row, of which the prototype and the macro that remembers the caller's line are written.
add function schedule/api.c
before schedule/functions.def '#undef' \
    'SCHED_FUNCTION(toy, toy, toy, (sched *s, const char *loop), NULL, 0, LOOP(loop))'
scripts/schedule_header
grep -q '^#define tec_toy(s, loop)' include/tec/schedule.h || fail "the public header does not have the new function"

# ---- build ----

object_of() {
    local room=${1%/*}
    echo "CMakeFiles/tec_${room//\//_}.dir/$1.o"
}

launcher=$(sed -n 's/^CMAKE_C_COMPILER_LAUNCHER:[A-Z]*=//p' "$build/CMakeCache.txt")
cmake -S . -B b -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DBUILD_TESTING=OFF \
    -DCMAKE_C_COMPILER_LAUNCHER="$launcher" >cmake.log ||
    { cat cmake.log; fail "the build does not know the rows"; }
names=()
for source in "${objects[@]}"; do
    names+=("$(object_of "$source")")
done
CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 ninja -C b "${names[@]}" >ninja.log ||
    { cat ninja.log; fail "what the recipes add does not compile"; }
# The command that links tec, for any main function, with the new objects in front of the libraries.
link=$(ninja -C "$build" -t commands tec | tail -1)
link=${link#*&& }
link=${link%% && :}
main=CMakeFiles/tec.dir/tools/tec.c.o
link_program() {
    local command=${link/ $main -o tec / $2 ${names[*]/#/$copy/b/} -o $copy/$1 }
    (cd "$build" && eval "$command") || fail "$1 does not link: $command"
}
link_program tec $main
tec=$copy/tec

# ---- the generator ----

cat >mm.te <<'END'
def mm(n, A: f32[n, 24], B: f32[24, 40]) where n >= 1 {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
END
"$tec" te mm.te --target toy --emit c | grep -q 'int32_t tec_k0_mm(' ||
    fail "the toy generator's text is not emitted"
"$tec" te mm.te --target toy --emit lowered | grep -q '^program mm' ||
    fail "nothing is lowered for the toy kind"
"$tec" te mm.te --target toy -o mm.tec
cc -std=c11 -D_GNU_SOURCE -Iinclude "$recipes/programs/product.c" "$build/libtec_runtime.a" \
    -lpthread -ldl -lm -o product
./product mm.tec || fail "the toy generator's module computes something else"
"$tec" te mm.te --target toy --time --dim n=7 --json >/dev/null ||
    fail "the toy generator's code does not run in the process"

# ---- the architecture ----

alone=$copy/tests/targets/alone
"$tec" te "$alone/product.te" --target 'llvm -mcpu=generic-rv64' --emit obj -o product.o
readelf -h product.o | grep -q 'Machine: *RISC-V' || fail "the object is not one of the architecture"
[ -z "$(nm -u product.o)" ] || fail "the object imports $(nm -u product.o)"
"$tec" te mm.te --target 'llvm -mcpu=generic-rv64' --emit asm | grep -q fmadd.s ||
    fail "multiply-adds are not fused"
if command -v clang-19 >/dev/null && command -v qemu-riscv64 >/dev/null; then
    clang-19 --target=riscv64-linux-gnu -march=rv64gc -mabi=lp64d -O1 -ffreestanding -fno-builtin -Iinclude \
        -c "$alone/run.c" -o run.o
    ld.lld-19 -static -e begin run.o product.o -o run
    qemu-riscv64 ./run || fail "the kernel for the new architecture ends with $?"
fi

# ---- pass, explorer, operator, primitive ----

cat >scale.te <<'END'
def scale(A: f32[8, 4]) {
  B[y, x] = A[y, x] * 2.0
  return B
}

schedule scale {
  toy(B.x)
}
END
"$tec" te scale.te --emit trace | grep -qx 'toy(B.x)' || fail "the primitive is not in the trace"
"$tec" te scale.te --emit lowered >lowered.tir
grep -q 'B\[B.y \* 4 + 3\] = A\[B.y \* 4 + 3\] + A\[B.y \* 4 + 3\]' lowered.tir ||
    { cat lowered.tir; fail "neither unrolled nor doubled"; }
sed 's/toy(B.x)/toy(B.y)/' scale.te >refused.te
"$tec" te refused.te --emit tree 2>&1 | grep -q "toy(B.y): 'B.y' has 8 iterations; the limit is 4" ||
    fail "the primitive refuses nothing"
sed -i "/^SCHED_PRIMITIVE(toy/!d" schedule/primitives.def # what is linked stays as it is
TEC=$tec scripts/schedule_docs | grep -qF "## toy" || fail "the page of primitives does not have the new one"
"$tec" fuzz --cases 60 --seed 3 --jobs 1 --target llvm --keep "$dir/found" >fuzz.log ||
    { cat fuzz.log; fail "the fuzzer finds a fault"; }

cc -std=c11 -D_GNU_SOURCE -I. -Iinclude -c "$recipes/programs/inside.c" -o inside.o
link_program inside "$copy/inside.o"
./inside || fail "the operator or the C function of the primitive does something else"

cp "$build/tec_runner" .
"$tec" tune mm.te --dim n=8 --explorer toy --trials 3 --threads 1 --records r.db >tune.log 2>&1 ||
    { cat tune.log; fail "the explorer does not tune"; }
