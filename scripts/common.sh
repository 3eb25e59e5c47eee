# common.sh -- what the scripts of this folder and .ci/run share; sourced, with bash, from the root of the project.

say() {
    printf '\n== %s\n' "$*"
}

# build_preset PRESET [TARGET...]: configures where that was not done yet, and builds what changed. Without targets: all, and
# the tests with them, also where Criterion came after the first configuration.
build_preset() {
    local preset=$1 dir=build/$1
    shift
    if [ $# = 0 ]; then
        grep -qx 'BUILD_TESTING:BOOL=ON' "$dir/CMakeCache.txt" 2>/dev/null || cmake --preset "$preset" -DBUILD_TESTING=ON
        cmake --build --preset "$preset" -j "$(nproc)"
    else
        [ -f "$dir/build.ninja" ] || cmake --preset "$preset"
        cmake --build --preset "$preset" -j "$(nproc)" --target "$@"
    fi
}

# Paragraphs and list items of Markdown, wrapped at 100 columns; indented code and headings stay as they are.
wrapped() {
    awk '
    function put(word) {
        if (line != "" && length(line) + 1 + length(word) > 100) { print line; line = indent word; return }
        line = line == "" ? word : line " " word
    }
    function flush() { if (line != "") print line; line = ""; indent = "" }
    /^$|^#|^    / { flush(); print; next }
    /^- / { flush(); indent = "  " }
    { for (i = 1; i <= NF; i++) put($i) }
    END { flush() }'
}
