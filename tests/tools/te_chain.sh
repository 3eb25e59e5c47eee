#!/bin/bash
# te -- chains of stencils that are inlined, from the first stage on and from the last one on: the results stay those of
# plain loops, and the code grows with the square of the chain's length, where its written-out terms grow by 3^n.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "te chain: $*" >&2
    exit 1
}

# chain N ORDER: N stages of 3-point stencils, all but the last inlined in this order.
chain() {
    local n=$1 order=$2 k before=A extent=$((64 + 2 * $1))
    echo "def f(A: f32[$extent]) {"
    for ((k = 0; k < n; k++)); do
        extent=$((extent - 2))
        echo "  S$k[x: $extent] = $before[x] * 0.25 + $before[x + 1] * 0.5 + $before[x + 2] * 0.25"
        before=S$k
    done
    printf '  return %s\n}\n\nschedule f {\n' "$before"
    for ((k = 0; k < n - 1; k++)); do
        [ "$order" = first ] && echo "  compute_inline(S$k)" || echo "  compute_inline(S$((n - 2 - k)))"
    done
    echo "}"
}

for order in first last; do
    for n in 4 8 16; do
        chain "$n" "$order" >"$dir/$n.te"
        timeout 60 "$TEC" te "$dir/$n.te" --check >"$dir/out" 2>&1 || { cat "$dir/out"; fail "failed: $n stages, $order first"; }
        grep -q 'same results as' "$dir/out" || { cat "$dir/out"; fail "$n stages, $order first"; }
        timeout 60 "$TEC" te "$dir/$n.te" --target opencl --emit opencl -o "$dir/$n.cl" || fail "no OpenCL C of $n stages"
    done
    # As text, parts that are used several times are printed once; in full, 16 stages take more than the limit of 67 million.
    for form in tree lowered; do
        "$TEC" te "$dir/16.te" --emit "$form" -o "$dir/16.$form" || fail "no $form of 16 stages"
        [ "$(wc -c <"$dir/16.$form")" -le 40000 ] || fail "the $form of 16 stages has $(wc -c <"$dir/16.$form") characters"
    done
    small=$(grep -c ';' "$dir/8.cl") large=$(grep -c ';' "$dir/16.cl")
    [ "$large" -le $((6 * small)) ] || fail "$small statements of 8 stages, $large of 16, $order first"
done

# A limit that a step gives itself takes the place of the default, and stays in the trace.
sed 's/^  compute_inline(S4)/  compute_inline(S4, 400000)/; /unroll/d' tests/error/compute-inline-too-large.te >"$dir/raised.te"
"$TEC" te "$dir/raised.te" --emit trace -o - >"$dir/out" 2>&1 || { cat "$dir/out"; fail "the raised limit is refused"; }
grep -qF 'compute_inline(S4, 400000)' "$dir/out" || { cat "$dir/out"; fail "the trace lost the limit"; }
