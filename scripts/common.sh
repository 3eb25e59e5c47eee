# common.sh -- what scripts/test, scripts/demo and .ci/run share; sourced, with bash, from the root of the project.

say() {
    printf '\n== %s\n' "$*"
}

# Configures the preset where that was not done yet, and builds what changed.
build_preset() {
    [ -f "build/$1/build.ninja" ] || cmake --preset "$1"
    cmake --build --preset "$1" -j "$(nproc)"
}
