#!/bin/bash
# users -- one token for each user: what a user may not do is refused beside what the same user may; the log says who did what; quota,
# retention, and the file of settings.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || cat "$dir/log"
    [ ! -e "$dir/out" ] || cat "$dir/out"
    echo "users: $*" >&2
    exit 1
}

start() { # OPTIONS
    rm -f "$state/port"
    "$tvmtune" serve --state "$state" --tec "$dir/tec" "$@" 2>>"$dir/log" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -s "$state/port" ] || return 0
        sleep 0.1
    done
    fail "the daemon does not answer"
}

# as USER STATUS WORDS COMMAND...: the command with the user's token ends with the status, and its output has WORDS.
as() {
    local token=$dir/$1.token status=$2 words=$3 got=0
    shift 3
    [ "$token" != "$dir/owner.token" ] || token=$state/token
    timeout 60 "$tvmtune" "$@" --port "$(cat "$state/port")" --token-file "$token" >"$dir/out" 2>&1 || got=$?
    [ $got = "$status" ] || fail "'$*' ended with $got instead of $status"
    [ -z "$words" ] || grep -qF -- "$words" "$dir/out" || fail "'$*' does not say '$words'"
}

printf '#!/bin/sh\nexec sleep 60\n' >"$dir/tec"
chmod +x "$dir/tec"
echo 'def f(A: f32[4]) {' >"$dir/f.te"

# the file of settings: named when wrong, overruled by the command line
printf '# settings\nquota = 1\njbos = 2\n' >"$dir/wrong.conf"
timeout 10 "$tvmtune" serve --state "$state" --config "$dir/wrong.conf" >"$dir/out" 2>&1 && fail "a wrong setting is taken"
grep -q "wrong.conf:3: error: unknown setting 'jbos'; expected one of state, store" "$dir/out" || fail "a wrong setting is not named"
printf 'quota = 1\nquota = 2\n' >"$dir/wrong.conf"
timeout 10 "$tvmtune" serve --state "$state" --config "$dir/wrong.conf" >"$dir/out" 2>&1 && fail "a setting is taken twice"
grep -q "wrong.conf:2: error: the setting 'quota' is given twice" "$dir/out" || fail "a second value is not named"
printf '# settings\n\nquota = 1\nmemory = 0\nlog = error\n' >"$dir/daemon.conf"
start --config "$dir/daemon.conf" --quota 2 --log info

for user in ada bob; do
    as owner 0 "" user add $user
    cp "$dir/out" "$dir/$user.token"
done
as owner 0 "" user add root --role admin
cp "$dir/out" "$dir/root.token"
as owner 1 "there is a user 'ada' already" user add ada
as owner 1 "expected the name of a user" user add "a b"
as owner 1 "is the name of the user with the folder's token" user add owner
as owner 2 "expected 'add NAME'" user add
as owner 0 "admin  root" user list
grep -q "^user   ada" "$dir/out" || fail "ada is not listed"
! grep -qF "$(cat "$dir/ada.token")" "$state/tune.db" "$state/tune.db-wal" || fail "the store has a token"
printf 'no-such-token-0123456789' >"$dir/eve.token"
as eve 1 "(401)" list

# each sees and changes own jobs; admins those of all
as ada 0 "queued" submit "$dir/f.te"
as bob 0 "queued" submit "$dir/f.te"
as ada 0 "f.te" list
[ "$(wc -l <"$dir/out")" = 1 ] || fail "ada sees jobs of others"
as ada 0 "f.te" list 1
as bob 1 "job 1 belongs to another user" list 1
for command in pause cancel rm fetch best; do
    as bob 1 "job 1 belongs to another user" $command 1
done
as bob 1 "only an admin may do this" user list
as bob 1 "only an admin may do this" user add eve
as bob 1 "only an admin may do this" user log
as root 0 "" list
[ "$(wc -l <"$dir/out")" = 2 ] || fail "an admin does not see all jobs"
for _ in $(seq 100); do # cancelled while it waits, a job would never be told of as running
    ! grep -q "job 1 is running" "$dir/log" || break
    sleep 0.1
done
as ada 0 "" cancel 1
as root 0 "" pause 2

# quota: the command line's 2, not the file's 1
as bob 0 "" submit "$dir/f.te"
as bob 1 "user 'bob' has 2 unfinished jobs; the quota is 2" submit "$dir/f.te"
as bob 0 "" cancel 2
as bob 0 "queued" submit "$dir/f.te"
as root 0 "" user remove ada
as ada 1 "(401)" list
as root 1 "there is no user 'ada'" user remove ada

# who did what
as owner 0 "" user log
python3 - "$dir/out" <<'END2' || fail "the log is another one"
import sys
rows = [line.split(None, 1)[1].split() for line in reversed(open(sys.argv[1]).read().splitlines())]
want = ["owner user add ada", "owner user add bob", "owner user add root", "ada submit job 1", "bob submit job 2", "bob refused: pause job 1",
        "bob refused: cancel job 1", "bob refused: rm job 1", "bob refused: user add eve", "ada cancel job 1", "root pause job 2",
        "bob submit job 3", "bob cancel job 2", "bob submit job 4", "root user remove ada"]
assert [" ".join(r) for r in rows] == want, rows
END2
for _ in $(seq 100); do
    ! grep -q "job 1 is failed: cancelled" "$dir/log" || break
    sleep 0.1
done
grep -q "job 1 is running" "$dir/log" && grep -q "job 1 is failed: cancelled" "$dir/log" || fail "the journal does not tell of job 1"

# retention: what was over long ago goes, what is not over stays
kill -TERM $daemon
wait $daemon || fail "the daemon ended with $?"
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute("UPDATE queue SET updated = 1000"); db.commit()' "$state/tune.db"
start --keep-days 1 --memory 0
for _ in $(seq 100); do
    as owner 0 "" list
    grep -qE '^ +1 ' "$dir/out" || break
    sleep 0.1
done
! grep -qE '^ +[12] ' "$dir/out" || fail "jobs that were over long ago stay"
grep -qE '^ +3 ' "$dir/out" && grep -qE '^ +4 ' "$dir/out" || fail "a job that is not over was removed"
