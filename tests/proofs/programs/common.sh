# common.sh -- what the proofs share; sourced. Builds run_loop in $dir, against the runtime alone, and the digits network for this machine.

: "${TEC:?}" "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$TEC_BUILD_DIR

fail() {
    echo "$proof: $*" >&2
    exit 1
}

# ctest takes 77 for a skipped test.
skip() {
    echo "$proof: skipped: $*"
    exit 77
}

[ -z "${TEC_SANITIZE-}" ] || skip "sanitizers allocate and call the system themselves"
cc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -Iinclude tests/proofs/programs/run_loop.c -o "$dir/run_loop" -L"$TEC_BUILD_DIR" -ltec_runtime
"$TEC" compile tests/models/digits/model.onnx -o "$dir/digits.tec" --quiet
