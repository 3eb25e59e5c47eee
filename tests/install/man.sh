#!/bin/bash
# man -- docs/man/tec.1 has the same commands, with the same options, as the program itself.
#
# Needs TEC, the program.
set -eu
: "${TEC:?}"
bad=0

commands=$("$TEC" --help | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
described=$(sed -nE 's/^\.Ss ([a-z]+)$/\1/p' docs/man/tec.1)
[ -n "$commands" ] || { echo "man: tec --help names no commands"; exit 1; }
if [ "$(sort <<<"$commands")" != "$(sort <<<"$described")" ]; then
    echo "man: tec has the commands" $commands "but its manual describes" $described
    bad=1
fi

options_of() {
    "$TEC" "$1" --help | sed -nE '/^options:/,$s/^  --?([a-z-]+).*/\1/p' | grep -vx help | sort
}

described_options_of() {
    sed -nE "/^\.Ss $1\$/,/^\.S[sh] /s/^\.It Fl -?([a-z-]+).*/\1/p" docs/man/tec.1 | sort
}

for command in $commands; do
    if [ "$(options_of "$command" || true)" != "$(described_options_of "$command")" ]; then
        echo "man: 'tec $command --help' and the manual differ ('<' help, '>' manual):"
        diff <(options_of "$command" || true) <(described_options_of "$command") | grep '^[<>]' || true
        bad=1
    fi
done
[ $bad = 0 ] && echo "man: ok"
exit $bad
