#!/bin/bash
# operations -- what docs/operations.md says: the unit is one that systemd takes, its command line is one that the daemon takes, and a
# backup made while a job runs, by the page's own command, brings the queue back.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    echo "operations: $*" >&2
    exit 1
}

start() { # FOLDER OPTIONS...
    "$tvmtune" serve --state "$@" --tec "$dir/tec" --memory 0 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -s "$1/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

finish() {
    kill -TERM $daemon
    wait $daemon || fail "the daemon ended with $?"
    daemon=
}

# the units
command -v systemd-analyze >"$dir/out" || fail "systemd-analyze is missing: scripts/packages --install test"
sed "s#/usr/bin/tvmtune#$tvmtune#" packaging/tvmtune.service >"$dir/tvmtune.service"
systemd-analyze verify "$dir/tvmtune.service" >"$dir/log" 2>&1 || fail "systemd does not take the unit"
sed 's/^ExecStart=.*/ExecStrat=nothing/' "$dir/tvmtune.service" >"$dir/wrong.service"
! systemd-analyze verify "$dir/wrong.service" >"$dir/out" 2>&1 || fail "systemd-analyze takes any unit"
options=$(sed -n 's#^ExecStart=/usr/bin/tvmtune serve ##p' packaging/tvmtune.service)
[ -n "$options" ] || fail "the unit starts no daemon"
for option in $(grep -oE -- '--[a-z]+' <<<"$options"); do
    "$tvmtune" serve --list-options | grep -q "^$option \|^${option#--} " || fail "the unit uses '$option', which serve does not have"
done

for program in rpc_tracker rpc_server; do
    sed "s#/usr/bin/$program#$TEC_BUILD_DIR/$program#" "packaging/$program.service" >"$dir/$program.service"
    systemd-analyze verify "$dir/$program.service" >"$dir/log" 2>&1 || fail "systemd does not take the unit of $program"
    options=$(sed -n "s#^ExecStart=/usr/bin/$program ##p" "packaging/$program.service")
    [ -n "$options" ] || fail "the unit starts no $program"
    for option in $(grep -oE -- '--[a-z-]+' <<<"$options"); do
        "$TEC_BUILD_DIR/$program" --help | grep -q "^ *$option " || fail "the unit uses '$option', which $program does not have"
    done
done
# the command line of the daemon with a pool, as the page says it
options=$(sed -n 's#^ExecStart=/usr/bin/tvmtune serve ##p' docs/operations.md)
for option in $(grep -oE -- '--[a-z-]+' <<<"$options"); do
    "$tvmtune" serve --list-options | grep -q "^$option \|^${option#--} " || fail "the page uses '$option', which serve does not have"
done

# a backup while a job runs
printf '#!/bin/sh\nexec sleep 60\n' >"$dir/tec"
chmod +x "$dir/tec"
echo 'def f(A: f32[4]) {' >"$dir/f.te"
start "$dir/state"
"$tvmtune" submit --state "$dir/state" "$dir/f.te" --trials 3 >"$dir/out"
"$tvmtune" submit --state "$dir/state" "$dir/f.te" --priority -1 >"$dir/out"
for _ in $(seq 100); do
    ! "$tvmtune" list --state "$dir/state" 1 | grep -q running || break
    sleep 0.1
done
backup=$(grep '^python3 -c .*VACUUM' docs/operations.md) || fail "the page has no backup"
(cd "$dir" && eval "$backup") || fail "the backup failed"
finish
mkdir "$dir/restored"
mv "$dir/backup.db" "$dir/restored/tune.db"
start "$dir/restored"
for _ in $(seq 100); do
    "$tvmtune" list --state "$dir/restored" >"$dir/out"
    ! grep -qE '^ +1 +running .* f.te$' "$dir/out" || break
    sleep 0.1
done
grep -qE '^ +1 +running .* f.te$' "$dir/out" || fail "the job that ran does not go on: $(cat "$dir/out")"
grep -qE '^ +2 +queued .* f.te$' "$dir/out" || fail "the job that waited is lost: $(cat "$dir/out")"
"$tvmtune" fetch --state "$dir/restored" 2 --file input -o - | cmp - "$dir/f.te" || fail "the input is another one"
finish
