#!/bin/bash
# nulls -- every public function called with nothing: NULL for each pointer, 0 for each number; then with a context and
# a tec_error where it takes one; then with these and 2 for each number, as a length of an array that is NULL. None
# crashes, and one that fails says why.
#
# The calls are written from the libraries' own lists of symbols; C++ finds out what each function takes. Needs
# TEC_BUILD_DIR, a finished build.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/nulls.cpp" <<'CPP'
#include <cstdio>
#include <cstring>
#include <sys/wait.h>
#include <tec/tec.h>
#include <unistd.h>

static bool given;   /* a context and an error are */
static int number; /* what each number is */
static tec_error err;

template <class T> struct nothing {
    static T make() { return T(); }
};
template <> struct nothing<int> {
    static int make() { return number; }
};
template <> struct nothing<int64_t> {
    static int64_t make() { return number; }
};
template <> struct nothing<size_t> {
    static size_t make() { return (size_t)number; }
};
template <> struct nothing<DLDataType> {
    static DLDataType make() { return DLDataType{kDLFloat, (uint8_t)(number ? 32 : 0), 1}; }
};
template <> struct nothing<tec_attrs> {
    static tec_attrs make() { return tec_attrs{nullptr, number}; }
};
template <> struct nothing<tec_context *> {
    static tec_context *make() { return given ? tec_context_new() : nullptr; }
};
template <> struct nothing<tec_error *> {
    static tec_error *make() { return given ? &err : nullptr; }
};

template <class T> struct is_error {
    static const bool value = false;
};
template <> struct is_error<tec_error *> {
    static const bool value = true;
};
template <class... A> struct takes_error {
    static const bool value = false;
};
template <class H, class... A> struct takes_error<H, A...> {
    static const bool value = is_error<H>::value || takes_error<A...>::value;
};

static int said(bool failed, bool reports)
{
    return failed && given && reports && err.status == TEC_OK;
}

/* 1: it failed and did not say why. */
template <class... A> int call(bool (*f)(A...)) { return said(!f(nothing<A>::make()...), takes_error<A...>::value); }
template <class R, class... A> int call(R *(*f)(A...))
{
    return said(!f(nothing<A>::make()...), takes_error<A...>::value);
}
template <class R, class... A> int call(R (*f)(A...))
{
    f(nothing<A>::make()...);
    return 0;
}

template <class A, class B, class C> int call(void (*f)(A, B, C, ...))
{
    f(nothing<A>::make(), nothing<B>::make(), nothing<C>::make());
    return 0;
}

template <class F> int run(const char *name, F f)
{
    int status;

    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(call(f));
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return std::printf("%s%s%s: %s\n", name, given ? " with a context" : "", number ? " and numbers" : "",
                           strsignal(WTERMSIG(status))), 1;
    if (WEXITSTATUS(status))
        return std::printf("%s: fails without saying why\n", name), 1;
    return 0;
}

int main()
{
    int bad = 0, n = 0;

    for (int i = 0; i < 3; i++) {
        given = i > 0;
        number = i > 1 ? 2 : 0;
#define CALL(name) bad += run(#name, (name)), n++;
#include "calls.h"
    }
    std::printf("%d calls\n", n);
    return bad > 0;
}
CPP

nm -D --defined-only "$TEC_BUILD_DIR/libtec.so" "$TEC_BUILD_DIR/libtec_runtime.so" |
    sed -nE 's/.* T (tec_[a-z0-9_]+)$/CALL(\1)/p' | sort -u >"$dir/calls.h"
[ "$(wc -l <"$dir/calls.h")" -gt 200 ] || { echo "nulls: too few functions"; exit 1; }
g++ -std=c++11 -Wall -Wextra -Werror ${TEC_SANITIZE:+-fsanitize=$TEC_SANITIZE} -Iinclude -I"$dir" "$dir/nulls.cpp" \
    -o "$dir/nulls" -L"$TEC_BUILD_DIR" -ltec -Wl,-rpath,"$(realpath "$TEC_BUILD_DIR")"
"$dir/nulls" || { echo "nulls: see above"; exit 1; }
echo "nulls: ok"
