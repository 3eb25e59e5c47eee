#!/usr/bin/env python3
"""browser.py -- goes through the daemon's page in headless Chromium: BROWSER.py PROFILE URL TOKEN FILE KERNELS [PICTURES].

Speaks the DevTools protocol over a pipe: messages of JSON that end with a zero byte. Any error in the browser's console, any
dialog and any request to elsewhere is a failure.
"""
import base64, json, os, subprocess, sys, time


class Browser:
    def __init__(self, profile):
        to, self.write = os.pipe()
        self.read, back = os.pipe()

        def place():
            os.dup2(to, 30), os.dup2(back, 31)
            os.dup2(30, 3), os.dup2(31, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", "--window-size=1100,1150",
             "--user-data-dir=" + profile, "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to), os.close(back)
        self.n, self.rest, self.session, self.bad = 0, b"", None, []

    def event(self, m):
        kind, p = m.get("method"), m.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.bad.append("exception: " + json.dumps(p["exceptionDetails"])[:400])
        if kind == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.bad.append("console: " + p["entry"]["text"] + " " + p["entry"].get("url", ""))
        if kind == "Page.javascriptDialogOpening":
            self.bad.append("a dialog opened: " + p["message"])
        if kind == "Network.requestWillBeSent" and not p["request"]["url"].startswith((self.url, "blob:", "about:", "data:")):
            self.bad.append("a request to " + p["request"]["url"])

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                piece = os.read(self.read, 1 << 16)
                assert piece, "the browser is gone"
                self.rest += piece
            one, self.rest = self.rest.split(b"\0", 1)
            m = json.loads(one)
            if m.get("id") == self.n:
                assert "error" not in m, (method, m["error"])
                return m["result"]
            self.event(m)

    def open(self, url):
        self.url = url.split("#")[0]
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "DOM":
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)

    def do(self, script):
        r = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in r, (script, r["exceptionDetails"])
        return r["result"].get("value")

    def until(self, script, what):
        for _ in range(300):
            if self.do(script):
                return
            time.sleep(0.1)
        raise AssertionError(f"{what}: the page shows {self.do('document.body.innerText')[:600]!r}")

    def press(self, key, code):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text="\r" if key == "Enter" and kind == "keyDown" else "")

    def choose_file(self, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
        self.call("DOM.setFileInputFiles", files=[path], nodeId=node)

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def compare(b, kernels):
    """The chosen job shows its kernels; two of them are marked, so that their schedules stand side by side."""
    b.until(f"document.querySelectorAll('#kernels tr').length === {kernels}", "the kernels of a job that is done are not shown")
    for i in 1, 2:
        b.do(f"[...document.querySelectorAll('#kernels input')].find(x => !x.checked).click()")
        b.until(f"document.querySelectorAll('#compare pre').length === {i}", "no schedule to compare")


def walk(b, url, token, file, kernels):
    """What a user does, in order. Job 1 is done and has that many kernels; `file` is submitted here as job 2."""
    name = json.dumps(os.path.basename(file))
    b.open(url)
    # the door: a token by keyboard
    b.until("document.readyState === 'complete' && !document.getElementById('door').hidden", "no door")
    b.do("document.getElementById('token').focus()")
    b.call("Input.insertText", text=token)
    b.press("Enter", 13)
    b.until("document.getElementById('live').textContent === 'live'", "no events come")
    # submit; its row comes, its name is text
    b.choose_file(file)
    b.do("document.querySelector('#submit button').click()")
    row = f"[...document.querySelectorAll('#list tr')].find(r => r.children[1].textContent === {name})"
    b.until(f"{row} && {row}.dataset.state === 'running'", "the job does not run")
    b.until("document.querySelectorAll('#kernels tr').length === 1", "no kernel is shown")
    assert b.do("document.querySelectorAll('#list img, #kernels i, #title img').length") == 0, "a name became markup"
    # compare, errors, pause by keyboard
    b.do("document.querySelector('#kernels input').click()")
    b.until("document.querySelectorAll('#compare pre').length === 1", "no schedule to compare")
    b.do(f"[...{row}.querySelectorAll('button')].find(x => x.textContent === 'pause').focus()")
    b.press("Enter", 13)
    b.until(f"{row}.dataset.state === 'paused'", "the job does not pause")
    # the other views, light and dark
    for view in "records", "devices", "jobs":
        b.do(f"document.querySelector('button[data-view={view}]').click()")
        b.until(f"!document.getElementById('{view}').hidden", view + " is not shown")
    # what is done: its kernels with their curves, two schedules side by side
    b.do("document.querySelector('tr[data-job=\"1\"] button').click()")
    compare(b, kernels)
    assert b.do("document.querySelectorAll('#compare .differs').length") > 0, "two schedules do not differ"
    colours = set()
    for theme in "one", "two":
        b.do("document.getElementById('theme').click()")
        colours.add(b.do("getComputedStyle(document.documentElement).colorScheme"))
    assert colours == {"light", "dark"}, colours
    b.do(f"[...{row}.querySelectorAll('button')].find(x => x.textContent === 'cancel').click()")
    b.until(f"{row}.dataset.state === 'failed'", "the job is not cancelled")
    b.do(f"[...{row}.querySelectorAll('button')].find(x => x.textContent === 'remove').click()")
    b.until(f"!{row}", "the job is not removed")


def take_pictures(b, kernels, folder):
    """Job 1 as a user finds it on opening the page, in both themes."""
    b.call("Page.reload")
    b.until("document.readyState === 'complete' && document.getElementById('live').textContent === 'live'", "no events come")
    b.until("document.querySelector('tr[data-job=\"1\"]') !== null", "job 1 is not listed")
    b.do("document.querySelector('tr[data-job=\"1\"] button').click()")
    compare(b, kernels)
    for theme in "one", "two":
        b.do("document.getElementById('theme').click()")
        b.picture(f"{folder}/tvmtune-{b.do('document.documentElement.dataset.theme')}.png")


def main():
    profile, url, token, file, kernels = sys.argv[1:6]
    b = Browser(profile)
    try:
        walk(b, url, token, file, kernels)
        if len(sys.argv) > 6:
            take_pictures(b, kernels, sys.argv[6])
        assert not b.bad, b.bad
    finally:
        b.process.kill()
        b.process.wait()


main()
