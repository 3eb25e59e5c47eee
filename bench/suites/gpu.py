"""On a GPU (--device): products of f32 and f16, C1 to C12 and D1 to D9 at batch 1 and 64, softmax, layer norm, transpose and a copy, and
networks. Peer: PyTorch, with its TF32 off; networks also compiled. Times are those of the device's events: of a kernel alone, of a network
from main memory to main memory. On a device that is a CPU the sizes are small and PyTorch runs on the CPU, to try the suite.
"""
import ctypes
import json
import math
import os
import shutil
import subprocess

from bench import harness
from bench.gpu import kernels
from bench.harness import PYTHON, ROOT, TEC, WORK, Failed, Workload, call, program
from bench.suites import models

FOLDER = os.path.join(WORK, 'gpu')
TORCH = os.path.join(ROOT, 'build', 'peers', 'bin', 'python')
CPU = 'llvm -mcpu=native'
# least: what ratio, or share of the copy's bandwidth for `bandwidth`, is expected; of each row, or of the geometric mean of the group
BARS = {'sgemm': (0.9, 'each'), 'hgemm': (0.8, 'each'), 'conv': (0.9, 'mean'), 'depthwise': (1.5, 'mean'), 'bandwidth': (0.85, 'each'),
        'network': (1.0, 'mean')}
COPIED = {False: 256 << 20, True: 16 << 20}
NETWORKS = {False: ['lstm16', 'dqn', 'dcgan', 'resnet18', 'resnet50', 'mobilenet_v1', 'bert_base'], True: ['digits', 'dqn', 'lstm16']}
COLUMNS = ['device', 'gbytes', 'copy_share', 'least', 'sm_mhz', 'tf32', 'engines']
_groups, _bytes, _copied = {}, {}, []
_device = ''


def missing(options):
    """Why there is no such device; None: there is one. Asks the driver itself, before anything is built."""
    kind = options.device.split(':')[0]
    if kind not in ('cuda', 'opencl'):
        return f"no kind of device '{kind}'; there are cuda and opencl"
    library = {'cuda': 'libcuda.so.1', 'opencl': 'libOpenCL.so.1'}[kind]
    try:
        driver = ctypes.CDLL(library)
    except OSError as e:
        return f"no {kind} device: no driver: looked for '{library}': {e}"
    count = ctypes.c_int(0)
    if kind == 'cuda' and (driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0):
        return f"no {kind} device: the driver '{library}' has none"
    return None


def find(name):
    """The device as `tec devices` has it."""
    full = name if ':' in name else name + ':0'
    listed = json.loads(call(TEC, 'devices', '--json'))
    for device in listed['devices']:
        if device['name'] == full:
            return device
    reasons = [m['reason'] for m in listed['missing'] if m['kind'].startswith(full.split(':')[0])]
    raise Failed(f"there is no device '{full}': {'; '.join(reasons) or 'tec devices lists what there is'}")


def clock():
    """Of the multiprocessors, at this moment; '' where the driver's own program does not say."""
    if not shutil.which('nvidia-smi') or not _device.startswith('cuda'):
        return ''
    done = subprocess.run(['nvidia-smi', '--query-gpu=clocks.sm', '--format=csv,noheader,nounits', '-i', (_device + ':0').split(':')[1]],
                          capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ''


def say_what_runs(device):
    harness.say(f"bench: gpu: {device['name']}: {device['hardware']}, driver {device['driver']}, at most {device['clock_mhz']:.0f} MHz")
    harness.say('bench: gpu: TF32 is off in both; sums of f16 products are f32')
    if device['name'].startswith('cuda') and shutil.which('nvidia-smi'):
        harness.say(subprocess.run(['nvidia-smi', '--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw,persistence_mode',
                                    '--format=csv'], capture_output=True, text=True).stdout.strip())
    else:
        harness.say('bench: gpu: clocks at this moment: unknown, nvidia-smi is not there or not for this device')


def peer(kind, name, small, how='eager'):
    return [TORCH, os.path.join(ROOT, 'bench', 'peers', 'gpu_torch.py'), kind, name, how, 'cpu' if small else 'cuda', 'small' if small else 'full']


def need_torch(options):
    if options.peers and not os.path.exists(TORCH):
        raise Failed('build/peers is not there: scripts/packages --install peers')


def check_with_torch(ours, theirs, folder):
    """What ours computed, from its inputs, by PyTorch."""
    os.makedirs(folder, exist_ok=True)
    for command in (ours, theirs):
        word = 'write' if command is ours else 'check'
        done = subprocess.run(command, input=f'{word} {folder}\n', capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr.strip()[-400:])
    for file in os.listdir(folder):
        os.remove(os.path.join(folder, file))


def kernel(k, device, small, options):
    """A kernel: its module, the same function for the CPU, which computes what is expected, and the peer."""
    text, module, reference = (os.path.join(FOLDER, k.name + end) for end in ('.te', f'.{device["name"]}.tec', '.ref.tec'))
    ours = [program('bench_device'), device['name'], module, reference]
    theirs = peer('kernel', k.name, small)

    def check():
        need_torch(options)
        with open(text, 'w') as f:
            f.write(k.text.split('\nschedule ')[0] + '\n')
        call(TEC, 'te', text, '--target', CPU, '-o', reference)
        with open(text, 'w') as f:
            f.write(k.text)
        call(TEC, 'te', text, '--target', device['target'], '-o', module)
        if options.peers:
            check_with_torch(ours, theirs, os.path.join(FOLDER, 'arguments'))

    _groups[k.name], _bytes[k.name] = k.group, k.bytes
    # The results are right by then: the worker that is timed need not wait for the CPU again.
    quick = ours[:3] + ['none'] if options.peers else ours
    return Workload(k.name, quick, k.flops, check=check, peers={'torch': theirs}, peak=False)


def network(name, device, small, options):
    """A network with inputs and expected outputs of PyTorch's, or of plain loops for ResNet-18."""
    module, data = os.path.join(FOLDER, f'{name}.{device["name"]}.tec'), os.path.join(FOLDER, name)

    def check():
        need_torch(options)
        case = {'resnet18': models.resnet18, 'digits': models.digits}.get(name, lambda: models.made(name))()
        call(PYTHON, os.path.join(ROOT, 'bench', 'gpu', 'expected.py'), case, data)
        call(TEC, 'compile', os.path.join(case, 'model.onnx'), '--target', device['target'], '-o', module, '--quiet')

    _groups[name], _bytes[name] = 'network', 0
    return Workload(name, [program('bench_device'), device['name'], module, data], check=check, peak=False,
                    peers={f'torch-{how}': peer('network', name, small, how) for how in ('eager', 'compiled')})


def workloads(options):
    global _device
    os.makedirs(FOLDER, exist_ok=True)
    device = find(options.device)
    _device = device['name']
    small = device['target'] == 'opencl -device=pocl' or 'emulated' in device['hardware']
    say_what_runs(device)
    _groups['copy'], _bytes['copy'] = 'copy', 2 * COPIED[small]
    yield Workload('copy', [program('bench_device'), device['name'], 'copy', str(COPIED[small])], peak=False, check=lambda: need_torch(options),
                   peers={'torch': peer('kernel', 'copy', small)})
    for k in kernels.kernels(small):
        if k.on in ('any', device['name'].split(':')[0]) and options.only in k.name:
            yield kernel(k, device, small, options)
    for name in NETWORKS[small]:
        if options.only in name:
            yield network(name, device, small, options)


def bandwidth(row):
    return _bytes[row.workload] / row.ours_ms * 1e-6


def share(row):
    """Of the measured copy's bandwidth; 0 where either is unknown."""
    return bandwidth(row) / _copied[0] if _copied and _groups[row.workload] == 'bandwidth' else 0


def cells(row):
    if row.workload == 'copy' and not _copied:
        _copied.append(bandwidth(row))
    least = BARS.get(_groups[row.workload], ('', ''))[0]
    rate = bandwidth(row)
    return [_device, f'{rate:.1f}' if rate else '', f'{share(row):.2f}' if share(row) else '', str(least), clock(), 'off',
            ' '.join(sorted(set(row.chose.values())))]


def judge(rows, _options):
    """Rows and groups that miss their bar. A CPU's times are not judged."""
    if not _device.startswith('cuda'):
        return []
    missed = []
    for group, (least, how) in BARS.items():
        mine = [r for r in rows if _groups[r.workload] == group]
        ratios = [(r.workload, share(r) if group == 'bandwidth' else r.peers[r.best_peer()] / r.ours_ms) for r in mine
                  if group == 'bandwidth' or r.peers]
        if group == 'bandwidth' and not _copied:
            continue
        if how == 'mean' and ratios:
            ratios = [(f'geometric mean of {group}', math.exp(sum(math.log(v) for _, v in ratios) / len(ratios)))]
        missed += [f'{name}: {ratio:.2f}, expected {least}' for name, ratio in ratios if ratio < least]
    return missed
