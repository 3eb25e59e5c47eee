#!/bin/bash
# doors -- who may come in: each request that the daemon must refuse, beside its twin that it answers; names and paths that try to
# reach elsewhere; and the codes that docs/api.md promises.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

# A compiler that does nothing but wait: jobs stay running.
printf '#!/bin/sh\nexec sleep 60\n' >"$dir/tec"
chmod +x "$dir/tec"
mkdir "$dir/state"
printf 'a-token-for-everybody' >"$dir/state/token"
chmod 644 "$dir/state/token"
timeout 10 "$tvmtune" serve --state "$dir/state" --tec "$dir/tec" --memory 0 >"$dir/out" 2>&1 &&
    { echo "doors: a token that others may read is taken"; exit 1; }
grep -q "users may read the token (mode 644)" "$dir/out" || { cat "$dir/out"; exit 1; }
rm "$dir/state/token"
"$tvmtune" serve --state "$dir/state" --tec "$dir/tec" --memory 0 --body-seconds 2 2>"$dir/log" &
daemon=$!
for _ in $(seq 100); do
    [ ! -s "$dir/state/port" ] || break
    sleep 0.1
done

python3 - "$dir/state" docs/api.md <<'END2' || { cat "$dir/log"; exit 1; }
import json, socket, sys, time

state, page = sys.argv[1:]
port = int(open(state + "/port").read())
token = open(state + "/token").read().strip()
bad = 0

def send(text, body=b"", wait=20):
    """The status and the body that come back; 0 where the connection ends without an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as s:
        try:
            s.sendall(text.encode("latin-1") + body)
        except OSError:
            pass # it has answered already, and reads no more
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except (ConnectionError, TimeoutError):
            pass # a request that is not complete is waited for
    head, _, rest = got.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), rest

def ask(method="GET", path="/v1/jobs", body=b"", host=None, auth=None, length=None, more=""):
    host = f"127.0.0.1:{port}" if host is None else host
    auth = f"Authorization: Bearer {token}\r\n" if auth is None else auth
    length = len(body) if length is None else length
    return send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{auth}{more}Content-Length: {length}\r\nConnection: close\r\n\r\n", body)

def expect(status, what, got, words=b""):
    global bad
    if got[0] != status or words not in got[1]:
        print(f"doors: {what}: expected {status} with {words}, found {got}")
        bad = 1

expect(200, "a request as it should be", ask())
expect(200, "by the other name", ask(host=f"localhost:{port}"))
expect(401, "no token", ask(auth=""), b"token")
expect(401, "a wrong token", ask(auth="Authorization: Bearer " + "0" * len(token) + "\r\n"))
expect(401, "a part of the token", ask(auth=f"Authorization: Bearer {token[:-1]}\r\n"))
expect(401, "more than the token", ask(auth=f"Authorization: Bearer {token}0\r\n"))
expect(401, "another scheme", ask(auth=f"Authorization: Basic {token}\r\n"))
expect(200, "the page, which asks for the token itself", ask(path="/", auth=""), b"<title>tvmtune")
expect(403, "the page by a name that was made to point here", ask(path="/", auth="", host=f"evil.example:{port}"), b"Host")
expect(401, "a change of the page", ask("POST", "/", auth=""))
expect(403, "a name that was made to point here", ask(host=f"evil.example:{port}"), b"Host")
expect(403, "another port", ask(host=f"127.0.0.1:{port + 1}"))
expect(200, "a page of this host", ask(more=f"Origin: http://127.0.0.1:{port}\r\n"))
expect(403, "a page of another site", ask(more="Origin: http://evil.example\r\n"), b"Origin")
expect(403, "a page without an origin", ask(more="Origin: null\r\n"))
expect(413, "an oversize body", ask("POST", "/v1/jobs?name=a.te", b"x", length=268435457))
expect(401, "a large body of a stranger, before it is read", ask("POST", "/v1/jobs?name=a.te", b"x", auth="", length=200000000))

expect(201, "a submission", ask("POST", "/v1/jobs?name=a.te&priority=-3", b"def"), b'"priority":-3')
expect(201, "a name with a script is a name", ask("POST", "/v1/jobs?name=%3Cscript%3E.te", b"def"), b'"name":"<script>.te"')
for name in "..%2Fa.te", "%2Fetc%2Fa.te", ".te", "-a.te", "a.txt", "a%0A.te", "a%5Cb.te", "x" * 300 + ".te":
    expect(400, f"the name {name[:20]}", ask("POST", f"/v1/jobs?name={name}", b"def"), b"name: expected")
expect(400, "a name that is no UTF-8", ask("POST", "/v1/jobs?name=%ff.te", b"def"))
expect(400, "no name", ask("POST", "/v1/jobs", b"def"))
expect(400, "an empty file", ask("POST", "/v1/jobs?name=a.te"), b"is empty")
expect(400, "an option of tec that is none of a job", ask("POST", "/v1/jobs?name=a.te&records=/etc/passwd", b"def"), b"unknown parameter 'records'")
expect(400, "no number", ask("POST", "/v1/jobs?name=a.te&trials=1x", b"def"), b"trials: expected a number from 1")
expect(400, "a class of devices, and no pool", ask("POST", "/v1/jobs?name=a.te&device-class=board", b"def"), b"--tracker")
expect(400, "too many parameters", ask("POST", "/v1/jobs?name=a.te" + "&dim=a=1" * 70, b"def"), b"too many parameters")

for path in "/index.html", "/page", "/v1", "/v1/jobs/", "/v1/jobs/../../etc/passwd", "/v1/jobs/1/files/", "/v1/jobs/1/files/a/b", \
        "/v1/jobs/-1", "/v1/jobs/01", "/v2/jobs", "/v1/jobs/1x":
    expect(404, f"the path {path}", ask(path=path))
expect(404, "a file of the folder", ask(path="/v1/jobs/1/files/..%2Ftoken"))
expect(404, "no such job", ask(path="/v1/jobs/99"), b"there is no job 99")
expect(404, "a number beyond all", ask(path="/v1/jobs/" + "9" * 40))
expect(405, "a method that the path does not know", ask("DELETE", "/v1/jobs"))
expect(200, "the input, as it was", ask(path="/v1/jobs/1/files/input"), b"def")
for text in "\r\n\r\n", "GET\r\n\r\n", "GET /v1/jobs HTTP/1.1\r\n\r\n", "GET /v1/jobs HTTP/9.9\r\nHost: x\r\n\r\n", "\0" * 100 + "\r\n\r\n":
    status, _ = send(text, wait=1)
    if 200 <= status < 300:
        print(f"doors: {text!r} is answered with {status}")
        bad = 1

# a body that comes drop by drop: in time, and never
def drip(pause, what, status):
    head = f"POST /v1/jobs?name=drip.te HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Length: 8\r\nConnection: close\r\n\r\n"
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        try:
            s.sendall(head.encode())
            for i in range(8):
                s.sendall(b"d")
                time.sleep(pause)
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
    expect(status, what, (int(got.split()[1]) if got else 0, b""))

drip(0.01, "a body in pieces", 201)
drip(0.8, "a body that takes longer than it may", 0)
expect(200, "the body in pieces was a job", ask("DELETE", "/v1/jobs/3"))

expect(200, "counts", ask(path="/v1/metrics"), b'tvmtune_jobs{state="queued"} 1\ntvmtune_jobs{state="running"} 1\n')
expect(401, "counts for strangers", ask(path="/v1/metrics", auth=""))

# each status that was seen here is in the page
words = open(page).read()
for status in 200, 201, 400, 401, 403, 404, 405, 413:
    if str(status) not in words:
        print(f"doors: {page} does not mention {status}")
        bad = 1
jobs = json.loads(ask()[1])["jobs"]
if [j["id"] for j in jobs] != [1, 2]:
    print("doors: other jobs than the two that were taken:", jobs)
    bad = 1
sys.exit(bad)
END2
kill -0 $daemon || { echo "doors: the daemon ended"; exit 1; }

# doctor: all is well; then the first step that fails, and what to do
doctor() { # STATUS WORDS
    local got=0
    timeout 100 "$tvmtune" doctor --state "$dir/state" >"$dir/out" 2>&1 || got=$?
    [ $got = "$1" ] && grep -qF -- "$2" "$dir/out" || { cat "$dir/out"; echo "doors: doctor ended with $got and without '$2'"; exit 1; }
}
doctor 0 "ok      store"
token=$(cat "$dir/state/token")
printf 'another-token-0123456789' >"$dir/state/token"
doctor 1 "FAILED  token"
printf '%s' "$token" >"$dir/state/token"
kill -KILL $daemon
wait $daemon 2>"$dir/err" || true
daemon=
doctor 1 "FAILED  daemon"
grep -q "tvmtune serve" "$dir/out" || { cat "$dir/out"; echo "doors: doctor does not say what to do"; exit 1; }
rm "$dir/state/port"
doctor 1 "FAILED  folder"
