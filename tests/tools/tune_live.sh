#!/bin/bash
# tune_live -- what tec tune draws on a terminal: one line for each kernel, none of which wraps, whatever the size; and Ctrl-C.
set -eu
: "${TEC:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/many.te" <<'END'
def first_of_some_definitions_whose_names_are_long(A: f32[64, 64]) {
  C[y, x] = A[y, x] + 1.0
  return C
}
def second(A: f32[64, 32], B: f32[32, 64]) {
  C[y, x] = sum[k](A[y, k] * B[k, x])
  return C
}
def third(A: f32[64, 64]) {
  C[y, x] = A[y, x] * 2.0
  return C
}
END
exec timeout 200 python3 - "$TEC" "$dir" <<'END'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

TEC, DIR = sys.argv[1:]


class Screen:
    """What a terminal shows of the bytes; lines that scroll out at the top are in `gone`."""

    def __init__(self, rows, columns):
        self.rows, self.columns, self.gone, self.wraps = rows, columns, [], 0
        self.cells, self.row, self.column = [[' '] * columns for _ in range(rows)], 0, 0

    def down(self):
        if self.row < self.rows - 1:
            self.row += 1
            return
        self.gone.append(''.join(self.cells.pop(0)))
        self.cells.append([' '] * self.columns)

    def put(self, character):
        if self.column == self.columns:
            self.column = 0
            self.wraps += 1
            self.down()
        self.cells[self.row][self.column] = character
        self.column += 1

    def command(self, number, letter):
        if letter == 'A':
            self.row = max(0, self.row - number)
            return
        assert letter in 'JK', letter
        self.cells[self.row][self.column:] = [' '] * (self.columns - self.column)
        for line in self.cells[self.row + 1:] if letter == 'J' else []:
            line[:] = [' '] * self.columns

    def feed(self, text):
        for number, letter, character in re.findall(r'\x1b\[(\d*)([A-Za-z])|(.)', text, re.S):
            if letter:
                self.command(int(number or 1), letter)
            elif character == '\n':
                self.down()
            elif character == '\r':
                self.column = 0
            else:
                self.put(character)

    def lines(self):
        return [line.rstrip() for line in self.gone + [''.join(c) for c in self.cells]]


def run(name, rows, columns, *options, events=(), term='xterm'):
    """Runs tec tune there. An event is (seconds after the first frame, what): '^C' or a size. Its status, the screen, the bytes, and how long
    it took from the last event on."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ['TERM'] = term
        time.sleep(0.1)  # until the terminal has its size
        os.execv(TEC, [TEC, 'tune', f'{DIR}/many.te', '--threads', '1', '--records', f'{DIR}/{name}.db', *options])
    resize = lambda r, c: fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', r, c, 0, 0))
    resize(rows, columns)
    out, begun, last, left = b'', None, time.time(), list(events)
    while True:
        if begun is not None and left and time.time() - begun >= left[0][0]:
            what = left.pop(0)[1]
            last = time.time()
            os.write(fd, b'\x03') if what == '^C' else resize(*what)
        if select.select([fd], [], [], 0.02)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
            begun = begun or (time.time() if b'trials' in out else None)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    screen = Screen(rows, columns)
    screen.feed(out.decode())
    return status, screen, out, time.time() - last


def need(truth, what, screen):
    if not truth:
        sys.exit('\n'.join(screen.lines()) + f'\ntune_live: {what}')


def block(lines):
    """The last block that was drawn."""
    return lines[max(i for i, line in enumerate(lines) if line.startswith('  kernel')):]


# the usual size: each kernel has one line, the last frame stays, the results follow
status, screen, out, _ = run('usual', 30, 80, '--trials', '12')
lines = screen.lines()
need(status == 0 and screen.wraps == 0, f'it ended with {status}, {screen.wraps} lines wrap', screen)
need(sum(line[2:].startswith('second ') for line in lines) == 1, 'a kernel has not one line', screen)
need(any(re.match(r'12 of 12 trials in \d+:\d\d; comparing', line) for line in lines), 'the total is missing', screen)
need(any(line.startswith('sum of the kernels') for line in lines), 'there is no table', screen)
need(any(re.match(r'  the tuner itself +[\d.]+ +[\d.]+ %', line) for line in lines), 'where the time went is missing', screen)
need(b', 0:0' in out and b' left' in out, 'the time that is left was never shown', screen)

# little room: fewer columns, no wrapping, and of the kernels those that fit
status, screen, out, _ = run('small', 5, 44, '--trials', '6')
need(status == 0 and b'  kernel 1-2 of 3 ' in out and b'  kernel 2-3 of 3 ' in out, f'the kernels were not cut, or it failed: {status} {out!r}', screen)
frames = re.sub(r'\x1b\[\d*[AKJ]|\r', '', out.decode()[out.decode().index('  kernel'):out.decode().index('all trials')])
need(all(len(line) < 44 for line in frames.split('\n')), f'a line of a frame is too long:\n{frames}', screen)

# no room at all, and a terminal that cannot draw: plain lines
for name, rows, columns, term in (('tiny', 3, 20, 'xterm'), ('dumb', 24, 80, 'dumb')):
    status, screen, out, _ = run(name, rows, columns, '--trials', '4', term=term)
    need(status == 0 and b'\x1b' not in out, f'{name}: it draws', screen)

# narrower while it runs: a new block begins; Ctrl-C: it stops, and goes on later
status, screen, out, took = run('resized', 30, 100, '--trials', '4000', events=[(0.5, (30, 60)), (1.2, '^C')])
lines = screen.lines()
need(status == 1 and 'stopped: the same command goes on from here' in lines, f'Ctrl-C: it ended with {status}', screen)
need(sum(line.startswith('  kernel') for line in lines) >= 2, 'no new block after the size has changed', screen)
need(all(len(line) < 60 for line in block(lines)[:5]), 'the new block is too wide', screen)
need('Ctrl-C again: at once' in out.decode(), 'Ctrl-C is not told', screen)
status, screen, out, _ = run('resized', 30, 100, '--trials', '1')
need(status == 0 and b' known before)' in out, 'what was measured before the Ctrl-C is gone', screen)

# twice: at once
status, screen, out, took = run('twice', 30, 100, '--trials', '4000', events=[(0.3, '^C'), (0.35, '^C')])
need(status in (-signal.SIGINT, 1) and took < 2, f'the second Ctrl-C: status {status}, {took:.1f} s', screen)
need(not [f for f in os.listdir(DIR) if f.endswith('.lock')], 'a lock was left', screen)
END
