#!/bin/bash
# tvmtune_proxy -- the ways to the tuning daemon from another machine, as docs/operations.md has them: its configuration of a proxy
# for TLS, and its forwarding through ssh, from a network of its own that reaches the daemon no other way. Each is tried beside what
# it must not let in. Run as root.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
page=docs/operations.md
dir=$(mktemp -d)
state=$dir/state
daemon=
proxy=
trap 'for p in $proxy $daemon; do kill -KILL "$p" 2>"$dir/err" || true; done; rm -rf "$dir"' EXIT

fail() {
    for f in "$dir"/{log,proxy.log,ssh.log,out}; do [ ! -e "$f" ] || tail -n 10 "$f"; done
    echo "tvmtune_proxy: $*" >&2
    exit 1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_for WHAT COMMAND...
wait_for() {
    local what=$1
    shift
    for _ in $(seq 100); do
        ! "$@" >"$dir/out" 2>&1 || return 0
        sleep 0.1
    done
    fail "$what"
}

for program in stunnel sshd ssh curl openssl; do
    PATH=$PATH:/usr/sbin command -v "$program" >"$dir/out" || fail "no $program here: scripts/packages --install proxy"
done
tls=$(free_port)
name=tuning.example:$tls
"$tvmtune" serve --state "$state" --hosts "$name" 2>"$dir/log" &
daemon=$!
wait_for "the daemon does not start" test -s "$state/port"
port=$(cat "$state/port")
token=$(cat "$state/token")

# ---- TLS: the configuration of the page, with the ports and the certificate of this test ----

openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=tuning.example -addext subjectAltName=DNS:tuning.example \
    -keyout "$dir/key.pem" -out "$dir/certificate.pem" 2>"$dir/err" || fail "no certificate"
cat "$dir/key.pem" "$dir/certificate.pem" >"$dir/both.pem"
chmod 600 "$dir/both.pem"
sed -n '/^\[tvmtune\]$/,/^```$/p' "$page" | grep -v '^```$' >"$dir/block"
[ "$(wc -l <"$dir/block")" = 4 ] || fail "$page has no configuration of a proxy"
{
    printf 'foreground = yes\npid =\n'
    sed "s|^accept = 443$|accept = 127.0.0.1:$tls|; s|127.0.0.1:8780|127.0.0.1:$port|; s|/etc/stunnel/tuning.example.pem|$dir/both.pem|" "$dir/block"
} >"$dir/stunnel.conf"
stunnel "$dir/stunnel.conf" 2>"$dir/proxy.log" &
proxy=$!
# through NAME PATH [OPTIONS]: the status of a request to the proxy by that name, its body in $dir/body
through() {
    local host=$1 path=$2
    shift 2
    curl -s -o "$dir/body" -w '%{http_code}' --max-time 20 --cacert "$dir/certificate.pem" \
        --connect-to "$host:$tls:127.0.0.1:$tls" "$@" "https://$host:$tls$path"
}
wait_for "the proxy does not answer" through tuning.example /
bearer="Authorization: Bearer $token"
[ "$(through tuning.example /v1/jobs -H "$bearer")" = 200 ] || fail "no list of jobs through the proxy"
[ "$(through tuning.example /v1/jobs)" = 401 ] || fail "jobs without a token"
[ "$(through tuning.example /v1/jobs -H "$bearer" -H "Host: other.example:$tls")" = 403 ] || fail "a name that nobody listed"
[ "$(through tuning.example /v1/jobs -H "$bearer" -H "Origin: https://$name")" = 200 ] || fail "the page's own site is refused"
[ "$(through tuning.example /v1/jobs -H "$bearer" -H 'Origin: https://other.example')" = 403 ] || fail "another site's page"
printf 'def f(A: f32[64]) {\n  B[i] = A[i] * 2.0\n  return B\n}\n' >"$dir/f.te"
# events come as they happen: the stream is open when the job is submitted, and tells of it before it is closed
curl -sN --max-time 60 --cacert "$dir/certificate.pem" --connect-to "$name:127.0.0.1:$tls" -H "$bearer" "https://$name/v1/events" >"$dir/events" &
stream=$!
[ "$(through tuning.example '/v1/jobs?name=f.te&trials=2' -H "$bearer" --data-binary @"$dir/f.te")" = 201 ] || fail "cannot submit through the proxy"
wait_for "no event through the proxy" grep -q '^event: job' "$dir/events"
kill "$stream"

# ---- ssh: a network without any way out but the pipe of the ssh client ----

ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$dir/user_key"
cp "$dir/user_key.pub" "$dir/authorized_keys"
printf 'HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\n' "$dir/host_key" "$dir/authorized_keys" >"$dir/sshd_config"
cat >"$dir/ssh_config" <<END
Host tuning-host
    User $(id -un)
    IdentityFile $dir/user_key
    UserKnownHostsFile $dir/known_hosts
    StrictHostKeyChecking accept-new
    ProxyCommand nsenter -t $daemon -n /usr/sbin/sshd -i -f $dir/sshd_config
END
mkdir -p /run/sshd
command=$(grep -m 1 '^ssh -N -L' "$page" | sed "s/8780/$port/g; s|^ssh|ssh -F $dir/ssh_config|")
[ -n "$command" ] || fail "$page has no command of ssh"
cat >"$dir/there" <<END
ip link set lo up
get() { curl -s -o "$dir/body" -w '%{http_code}' --max-time 20 -H "$bearer" "http://127.0.0.1:$port/v1/jobs"; }
! get >"$dir/before" || { echo "the daemon is reached without ssh"; exit 1; }
$command 2>"$dir/ssh.log" &
ssh=\$!
for _ in \$(seq 100); do ! get >"$dir/status" || break; sleep 0.1; done
kill \$ssh
[ "\$(cat "$dir/status")" = 200 ] || { echo "no list of jobs through ssh"; exit 1; }
END
unshare -n bash "$dir/there" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
grep -q '"f.te"' "$dir/body" || fail "the job is not in the list that came through ssh"
echo "tvmtune_proxy: ok: TLS and ssh"
