#!/bin/bash
# run -- plants a fault for each structural check in a small copy of the project, and expects the check to name it.
#
# The copy holds base, the public headers that base needs, and the scripts: enough to build libtec_runtime by hand.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
copy=$dir/copy
objects=$copy/b/CMakeFiles/tec_base.dir/base

fresh_copy() {
    rm -rf "$copy"
    mkdir -p "$copy/include/tec" "$copy/cmake" "$objects"
    cp -r base scripts "$copy"
    cp include/tec/base.h include/tec/dlpack.h "$copy/include/tec"
    sed '/^#include "tec\//{/base.h\|dlpack.h/!d}' include/tec/tec.h >"$copy/include/tec/tec.h"
    cp cmake/rooms.txt "$copy/cmake"
    git -C "$copy" init -q
}

build_copy() {
    local source
    rm -f "$objects"/*
    for source in "$copy"/base/*.c; do
        gcc -c -fPIC -fvisibility=hidden -D_GNU_SOURCE= -DTEC_VERSION='"0"' -I"$copy" -I"$copy/include" "$source" \
            -o "$objects/${source##*/}.o"
    done
    gcc -shared "$objects"/*.o "$@" -o "$copy/b/libtec_runtime.so"
    gcc -r -nostdlib "$objects"/*.o -o "$copy/b/all.o"
    objcopy --localize-hidden "$copy/b/all.o"
    ar rc "$copy/b/libtec_runtime.a" "$copy/b/all.o"
    for library in libtec libtec_rpc; do
        cp "$copy/b/libtec_runtime.so" "$copy/b/$library.so"
        cp "$copy/b/libtec_runtime.a" "$copy/b/$library.a"
    done
}

# expect CHECK TEXT: the check fails, and says so with the text. With an empty text: it passes.
expect() {
    local said status=0
    said=$("$copy/scripts/check" --build b "$1" 2>&1) || status=$?
    if [ -z "$2" ]; then
        [ $status = 0 ] || { echo "$1 complains about what is right:"; echo "$said"; exit 1; }
    elif [ $status = 0 ] || ! grep -qF -- "$2" <<<"$said"; then
        echo "$1 should have said '$2' but said (status $status):"
        echo "$said"
        exit 1
    fi
}

fresh_copy
build_copy
for check in rooms headers texts symbols globals runtime-size links; do
    expect $check ""
done

mkdir "$copy/zoo"
echo '#include "base/base.h"' >"$copy/zoo/lion.c"
expect rooms '"zoo" is no room'
fresh_copy
echo '#include "ir/ir.h"' >>"$copy/base/text.c"
expect rooms 'room "base" may not include "ir/ir.h"'
fresh_copy
mkdir "$copy/te"
echo '#include "base/context.h"' >"$copy/te/lion.c"
sed -i '1s/-- .*/-- inside the room: lions. *\//' "$copy/base/context.h"
expect rooms '"base/context.h" is for the files inside base/ alone'
mkdir -p "$copy/ir/reason"
echo '/* ir/cubs.h -- inside ir/: cubs. */' >"$copy/ir/cubs.h"
echo '#include "ir/cubs.h"' | tee "$copy/ir/reason/lion.c" >"$copy/te/lion.c"
expect rooms 'te/lion.c:1: "ir/cubs.h" is for the files inside ir/ alone'
rm "$copy/te/lion.c"
expect rooms ''
fresh_copy
echo '#include "base.h"' >>"$copy/base/text.c"
expect rooms 'write "base/base.h"'
fresh_copy
echo '#include "base/base.h"' >>"$copy/include/tec/base.h"
expect rooms 'a public header may include only public headers'
fresh_copy
sed -i 's/^ir .*/ir | ir | schedule | -/' "$copy/cmake/rooms.txt"
expect rooms 'names "schedule", which has no row above it'
fresh_copy
mkdir -p "$copy/compiler" "$copy/targets/llvm" "$copy/targets/toy"
echo 'typedef int toy;' | tee "$copy/targets/llvm/llvm.h" >"$copy/targets/toy/toy.h"
sed -i 's/^compiler .*/targets\/toy | toy | base | -\n&/' "$copy/cmake/rooms.txt"
printf '#include "targets/llvm/llvm.h"\n#include "targets/toy/toy.h"\n' >"$copy/compiler/both.c"
expect rooms ''
sed -i '/^compiler /s/targets\/[*]/targets\/toy/' "$copy/cmake/rooms.txt"
expect rooms 'room "compiler" may not include "targets/llvm/llvm.h"'

fresh_copy
sed -i '/#include "base\/base.h"/d' "$copy/base/lexer.h"
expect headers 'base/lexer.h does not compile alone as C:'
fresh_copy
sed -i 's/tec_context \*tec_here(tec_context \*cx/tec_context *tec_here(tec_context *class/' "$copy/include/tec/base.h"
expect headers 'include/tec/base.h does not compile alone as C++:'
fresh_copy
echo '#pragma once' >"$copy/include/tec/new.h"
expect headers 'tec.h does not include tec/new.h'

fresh_copy
printf '/* see ..%s/notes */\n' /shared >>"$copy/base/text.c"
expect texts 'base/text.c'
fresh_copy
seq 1001 >"$copy/long.txt"
expect texts 'long.txt: 1001 lines'
fresh_copy
printf '/* TO%s: all of it */\n' DO >>"$copy/base/text.c"
expect texts 'a note to self'

fresh_copy
{ printf 'int base_lion(int n);\nint base_lion(int n)\n{\n'; yes '    n++;' | head -12; printf '    return n;\n}\n'; } >"$copy/base/lion.c"
expect sentences "base/lion.c:2: 'base_lion' has 15 lines or more"
sed -i '2i /* Counts the lions of a pride of n. */' "$copy/base/lion.c"
expect sentences ""

fresh_copy
printf '#\n' >"$copy/scripts/words.todo"
expect words ""
printf '/* A hea%s lion. */\nstatic int kee%s(int n)\n{\n    return n;\n}\n' vy p >"$copy/base/lion.c"
expect words "is a private word: a stage is tiled"
expect words "base/lion.c:2: 'keep' says nothing by itself"
printf '#\nbase/text.c:turn_to\n' >"$copy/scripts/words.todo"
expect words "'base/text.c:turn_to' is no longer needed"

fresh_copy
mkdir "$copy/docs"
printf '# Lions\n\n[tigers](docs/tigers.md)\n' >"$copy/README.md"
expect links 'the link "docs/tigers.md" leads nowhere'
printf '# Tigers\n\n[below](#stripes)\n\n## Stripes\n' >"$copy/docs/tigers.md"
expect links ""
printf '[stripes](docs/tigers.md#stripes) [teeth](docs/tigers.md#teeth)\n' >>"$copy/README.md"
expect links '"docs/tigers.md" has no heading "#teeth"'
rm "$copy/README.md"
expect links 'docs/tigers.md: no other page links to it'

fresh_copy
echo 'int lion(void); int lion(void) { return 0; }' >"$copy/base/lion.c"
build_copy
expect symbols "base/lion.c: 'lion' lacks the prefix of its room"
echo '__attribute__((visibility("default"))) int base_lion(void); int base_lion(void) { return 0; }' >"$copy/base/lion.c"
build_copy
expect dead "base/lion.c: nothing calls 'base_lion'"
expect symbols "libtec_rpc.so exports 'base_lion'"
expect symbols "libtec_runtime.a exports 'base_lion'"

fresh_copy
echo 'static int lions = 3; int base_lion(void); int base_lion(void) { return lions++; }' >"$copy/base/lion.c"
build_copy
expect globals "'lions' is a writable global"
echo 'static _Thread_local int lions; int base_lion(void); int base_lion(void) { return lions++; }' >"$copy/base/lion.c"
build_copy
expect globals "'lions' is a writable global"

fresh_copy
printf '```mermaid\n```\n' >"$copy/ARCHITECTURE.md"
expect drawing 'the drawing of the rooms differs'
(cd "$copy" && scripts/rooms_drawing)
expect drawing ''
sed -i '/^worker /d; s/^autotune .*/autotune | tune | base | -/' "$copy/cmake/rooms.txt"
expect drawing 'run scripts/rooms_drawing'

fresh_copy
echo 'extern const char base_lion[400000]; const char base_lion[400000] = {1};' >"$copy/base/lion.c"
build_copy
expect runtime-size 'bytes stripped; it may have 300000'
fresh_copy
build_copy -Wl,--no-as-needed -lm
expect runtime-size 'needs libm.so.6'
echo "checks: ok"
