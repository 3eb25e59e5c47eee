#!/bin/bash
# page -- the page and the events: what is served to whom, under which policy; events of jobs as they change, to those who may see
# them; names with markup stay text, in the report too. tests/full/tvmtune_browser.sh goes through the page with a browser.
set -eu
: "${TEC_BUILD_DIR:?}"
tvmtune=$TEC_BUILD_DIR/tvmtune
dir=$(mktemp -d)
state=$dir/state
daemon=
trap '[ -z "$daemon" ] || kill -KILL $daemon 2>"$dir/err" || true; rm -rf "$dir"' EXIT

fail() {
    [ ! -e "$dir/log" ] || tail -n 20 "$dir/log"
    echo "page: $*" >&2
    exit 1
}

# A compiler that finds one kernel in each file, and waits where the file says so.
cat >"$dir/tec" <<'END2'
#!/bin/bash
case " $* " in *" --kernels "*)
    echo '{"event":"kernel","key":"'"$(md5sum <"$2" | cut -c1-16)"'","target":"t","task":"<i>k</i>","summary":"","uses":1,"codegen":"1"}'
    exit
    ;;
esac
! grep -q wait "$2" || sleep 60
while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done
[ "$1" != -o ] || echo module >"$2"
END2
chmod +x "$dir/tec"
"$tvmtune" serve --state "$state" --tec "$dir/tec" --memory 0 2>"$dir/log" &
daemon=$!
for _ in $(seq 100); do
    [ ! -s "$state/port" ] || break
    sleep 0.1
done
port=$(cat "$state/port")
echo wait >"$dir/<img src=x onerror=alert(1)>.te"
echo "def" >"$dir/quick.te"

python3 - "$state" "$dir" <<'END2' || fail "see above"
import http.client, json, sys, time, urllib.parse

state, folder = sys.argv[1:]
port = int(open(state + "/port").read())
owner = open(state + "/token").read().strip()

def ask(path, method="GET", body=None, token=owner):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.request(method, path, body, {"Authorization": "Bearer " + token} if token else {})
    return c.getresponse()

# the page, for everybody, and under a policy that lets nothing else in
for path, kind in ("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"):
    r = ask(path, token=None)
    text, policy = r.read(), r.headers["Content-Security-Policy"]
    assert r.status == 200 and r.headers["Content-Type"].startswith(kind), (path, r.status)
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy, policy
    assert b"//" not in text.replace(b"http://www.w3.org/2000/svg", b"") or kind == "text/javascript", path
    assert not any(word in text for word in (b"innerHTML", b"eval(", b"https://", b"document.write")), path
assert ask("/page.js", "POST", token=None).status == 401
assert ask("/v1/events", token=None).status == 401

def events(c, until):
    """(kind, data) of a stream until the function is satisfied."""
    rest = b""
    while True:
        piece = c.read1(65536)
        assert piece, "the stream ended"
        *whole, rest = (rest + piece).split(b"\n\n")
        for e in whole:
            if e.startswith(b":"):
                continue
            kind, data = (line.split(b": ", 1)[1].decode() for line in e.split(b"\n"))
            if until(kind, json.loads(data)):
                return

ada = json.loads(ask("/v1/users/ada", "POST").read())["token"]
mine, hers = ask("/v1/events"), ask("/v1/events", token=ada)
assert mine.headers["Content-Type"] == "text/event-stream"
r = ask("/v1/jobs?name=" + urllib.parse.quote("<script>alert(1)<.te"), "POST", b"def")
assert r.status == 201
states = []
events(mine, lambda kind, j: states.append(j["state"]) or j["state"] == "done")
# a quick job may be done before the first look at it
assert states[-1] == "done" and set(states) <= {"queued", "running", "done"}, states
assert ask("/v1/jobs?name=hers.te", "POST", b"def", token=ada).status == 201
seen = []
events(hers, lambda kind, j: seen.append(j["id"]) or j["state"] == "done")
assert set(seen) == {2}, f"a user is told of the jobs {seen}"
assert ask("/v1/jobs/1", "DELETE").status == 200
events(mine, lambda kind, j: kind == "gone" and j == 1)

# a report is a page without scripts, and names in it are text
r = ask("/v1/jobs/2/files/report.html")
text, policy = r.read().decode(), r.headers["Content-Security-Policy"]
assert "&lt;i&gt;k&lt;/i&gt;" in text and "<i>" not in text and "script" not in policy, text[:300]

# many who follow at once
many = [ask("/v1/events") for _ in range(200)]
ask("/v1/jobs?name=last.te", "POST", b"def")
for c in many:
    events(c, lambda kind, j: j == 3 or (isinstance(j, dict) and j["id"] == 3))
for path in "/v1/records?search=x", "/v1/devices":
    assert json.loads(ask(path).read()) is not None
END2
