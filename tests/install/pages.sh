#!/bin/bash
# pages -- what README.md and the pages of docs/ tell a reader to type works: their files are saved, their commands run against an
# installed tec, page by page in the order of the page, each page in a folder of its own that has the folders of the project.
#
#     ```te, ```tecp, ```c, ```json    saved as the file that the paragraph above names, as in "Save this as `matmul.te`:"; a text of
#                                      such a name is saved too: a file that is wrong on purpose
#     ```sh                            commands that succeed, one a line
#     ```console                       `$ command`, and below it what the command prints; `...` stands for anything
#     ```python                        runs where Python has NumPy; the blocks of a page are one program
#     ```                              not run
#
# A definition or program without a name must compile. Of all commands on the pages, run or not, and in code within a line, the
# subcommand and the options must be in the command's help. Needs TEC_BUILD_DIR; TEC_SANITIZE holds the sanitizers that it was built
# with, if any; TEC_PAGES names pages to run in place of all.
set -eu
: "${TEC_BUILD_DIR:?}"
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
root=$PWD
bad=0

cmake --install "$TEC_BUILD_DIR" --prefix "$dir/prefix" >"$dir/log" || { cat "$dir/log"; exit 1; }
libdir=$(dirname "$(find "$dir/prefix" -name libtec.so)")
export PATH=$dir/prefix/bin:$PATH PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir HOME=$dir/home
export PYTHONPATH=$root/python TEC_LIBRARY=$libdir/libtec.so TEC_RUNTIME_LIBRARY=$libdir/libtec_runtime.so PYTHONDONTWRITEBYTECODE=1
unset XDG_STATE_HOME XDG_CACHE_HOME
mkdir "$HOME"
python=1
[ -z "${TEC_SANITIZE-}" ] && /usr/bin/python3 -c 'import numpy' 2>"$dir/log" || python=

complain() {
    echo "pages: $*"
    bad=1
}

# The blocks of a page as files NUMBER.LANGUAGE; NUMBER.line has the place, NUMBER.name the name that the paragraph above gives.
blocks() {
    awk -v dir="$2" '
        /^```/ && open { open = 0; close(out); next }
        /^```/ {
            open = 1; n++
            language = substr($0, 4)
            out = sprintf("%s/%03d.%s", dir, n, language == "" ? "plain" : language)
            printf "" > out
            print FNR > sprintf("%s/%03d.line", dir, n)
            if (name != "") print name > sprintf("%s/%03d.name", dir, n)
            next
        }
        open { print > out; next }
        /^$/ { ended = 1; next }
        { if (ended) name = ""; ended = 0 }
        match($0, /`[A-Za-z_]+\.(c|te|tecp|json|txt)`/) { name = substr($0, RSTART + 1, RLENGTH - 2) }' "$1"
}

# said EXPECTED ACTUAL: they are the same, where `...` of what is expected stands for anything.
said() {
    local pattern
    pattern=$(sed -E 's/[][*?\\]/\\&/g; s/\.\.\./*/g' <<<"$1")
    [[ $2 == $pattern ]]
}

# run PLACE COMMAND: its output is in $dir/out.
run() {
    [ -z "${TEC_SANITIZE-}" ] || set -- "$1" "${2/#cc /cc -fsanitize=$TEC_SANITIZE }"
    if [[ ${2%%#*} =~ \&\ *$ ]]; then background "$@"; return; fi
    eval "$2" >"$dir/out" 2>&1 || { complain "$1: '$2' ends with $?:"; cat "$dir/out"; return 1; }
}

# A program that stays: it has started when it says something. A reader types the next command later than that.
background() { # PLACE COMMAND
    eval "$2" >"$dir/background" 2>&1
    for _ in $(seq 200); do
        [ ! -s "$dir/background" ] || return 0
        sleep 0.1
    done
    complain "$1: '$2' says nothing"
}

shell_block() { # FILE PLACE
    local line
    while IFS= read -r line; do
        run "$2" "$line" || return
    done <"$1"
}

# A command of a console may fail: its output says so.
console_block() { # FILE PLACE
    local line command="" expected=""
    while IFS= read -r line; do
        if [ "${line:0:2}" = '$ ' ]; then
            compare "$2" "$command" "$expected"
            command=${line:2} expected=""
        else
            expected+=$line$'\n'
        fi
    done < <(cat "$1"; echo '$ ')
}

compare() { # PLACE COMMAND EXPECTED
    [ -n "$2" ] || return 0
    [ -z "${TEC_SANITIZE-}" ] || set -- "$1" "${2/#cc /cc -fsanitize=$TEC_SANITIZE }" "$3"
    eval "$2" >"$dir/out" 2>&1 || true
    said "${3%$'\n'}" "$(cat "$dir/out")" || { complain "$1: '$2' prints something else:"; diff <(echo -n "$3") "$dir/out" || true; }
}

# A definition or program that no name saves.
compiles() { # FILE PLACE
    case $1 in
    *.te) run "$2" "tec te '$1'" || true ;;
    *.tecp) run "$2" "tec check-program '$1'" || true ;;
    esac
}

page() {
    local number folder file place name
    folder=$dir/page-${1//\//-}
    mkdir -p "$folder/blocks"
    blocks "$1" "$folder/blocks"
    for file in tests bench examples docs scripts; do ln -s "$root/$file" "$folder/$file"; done
    cd "$folder"
    for number in $(ls blocks | sed -n 's/\.line$//p'); do
        file=$(ls blocks/"$number".* | grep -vE '\.(line|name)$')
        place=$1:$(cat "blocks/$number.line")
        case $file in
        *.sh) shell_block "$file" "$place" || true ;;
        *.console) console_block "$file" "$place" ;;
        *.python)
            cat "$file" >>page.py
            [ -z "$python" ] || run "$place" "/usr/bin/python3 page.py" || true
            ;;
        *.te | *.tecp | *.c | *.json | *.text)
            name=$(cat "blocks/$number.name" 2>/dev/null || true)
            if [ -n "$name" ] && { [ "${file##*.}" = text ] || [ "${file##*.}" = "${name##*.}" ]; }; then
                cp "$file" "$name"
            else
                compiles "$file" "$place"
            fi
            ;;
        esac
    done
    cd "$root"
}

# ---- commands and their options ----

# Commands in blocks of code and in code within a line, as "PAGE:LINE COMMAND ...", one a line; `a | b` and comments are cut.
commands() {
    awk '
        FNR == 1 { open = 0 }
        /^```/ { open = !open; next }
        open || /^    / { take($0); next }
        { line = $0; while (match(line, /`[^`]+`/)) { take(substr(line, RSTART + 1, RLENGTH - 2)); line = substr(line, RSTART + RLENGTH) } }
        function take(text) {
            sub(/^ *(\$ )?/, "", text)
            sub(/ #.*/, "", text)
            if (text ~ /^(tec|tvmtune|rpc_server|rpc_tracker|tec_runner) / && text !~ /^[a-z_]+ ([a-z_-]+:|[A-Z])/)
                print FILENAME ":" FNR, text
        }' "$@"
}

# The help of a command: of its subcommand, if the second word is one.
help_of() {
    local key=$1-$2
    [ -e "$dir/help/$key" ] || "$1" ${2:+"$2"} --help >"$dir/help/$key" 2>&1 || true
    cat "$dir/help/$key"
}

options() {
    local place command second rest option
    mkdir -p "$dir/help"
    while read -r place command second rest; do
        case $command:$second in
        tec:[a-z]* | tvmtune:[a-z]*) ;;
        *) rest="$second $rest" second="" ;;
        esac
        [ "$second" != build-worker ] || continue # `tec tune` starts it for itself
        if [ -n "$second" ] && ! help_of "$command" "$second" | grep -q "^usage: $command $second"; then
            complain "$place: '$command' has no command '$second'"
            continue
        fi
        for option in $(grep -oE '(^| )-(-[a-z][a-z-]+|[a-z])\b' <<<"$rest"); do
            help_of "$command" "$second" | grep -qE -- "(^|[ ,[])$option([ ,=]|\]|$)" || complain "$place: '$command $second' has no option '$option'"
        done
    done < <(commands "$@")
}

pages=${TEC_PAGES:-$(echo README.md python/README.md docs/*.md)}
for each in $pages; do page "$each"; done
options $pages

# Each mistake of a wrong page is told.
cat >"$dir/wrong.md" <<'END'
A command `tec nonsense x` and an option `tec te --emitt tree`.

```te
def f(A: f32[4]) { B[i] = A[j] return B }
```

```sh
tec compile nothing.onnx
```

```console
$ echo hello
good bye
$ echo one two
one ...
$ echo [x]
[y]
```
END
told=$(page "$dir/wrong.md"; options "$dir/wrong.md")
[ "$(grep -c '^pages: ' <<<"$told")" = 6 ] || complain "expected 6 complaints of a wrong page, found: $told"
[ $bad = 0 ] || exit 1
echo "pages: ok"
