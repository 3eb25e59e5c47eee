#!/bin/bash
# decoders -- an RNN language model, greedy decoding with a cache that grows, and beam search, at five lengths each: as PyTorch
# exports them, they give what PyTorch computed (tests/models/decoders/make.py wrote both); built of few operators
# (tests/tools/decoders.py), they give what a reference in NumPy gives.
#
# Needs TEC, the program; Python with NumPy and onnx.
set -eu
: "${TEC:?}"
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
/usr/bin/python3 "$root/tests/tools/decoders.py" .
/usr/bin/python3 - "$root/tests/models/decoders" <<'PY'
import os
import shutil
import sys

import numpy as np

for name in ('torch_rnn', 'torch_greedy', 'torch_cache', 'torch_beam'):
    shutil.copy(os.path.join(sys.argv[1], f'{name}.onnx'), '.')
    for key, value in np.load(os.path.join(sys.argv[1], f'{name}.npz')).items():
        np.save(f'{name}.' + key.replace('/', '.') + '.npy', value)
PY

# The results of a run as JSON against the files of the reference: DECODER LENGTH OUTPUT...
compare() {
    /usr/bin/python3 - "$@" <<'PY'
import json
import sys

import numpy as np

name, n, *outputs = sys.argv[1:]
for i, output in enumerate(outputs):
    with open(f'out/result{i}.json') as f:
        value = json.load(f)
    found = np.array(value['data']).reshape(value['shape']) if isinstance(value, dict) else np.array(value)
    expected = np.load(f'{name}.{n}.{output}.npy')
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-4):
        sys.exit(f'decoders: {name} at length {n}: {output} is {found.tolist()}, expected {expected.tolist()}')
PY
}

# DECODER INPUT... -- OUTPUT...
check() {
    local name=$1 inputs=() n arguments input
    shift
    while [ "$1" != -- ]; do
        inputs+=("$1")
        shift
    done
    shift
    "$TEC" compile "$name.onnx" -o "$name.tec" --quiet
    for n in 1 2 5 11 24; do
        arguments=()
        for input in "${inputs[@]}"; do
            arguments+=(--input "$input=$name.$n.$input.npy")
        done
        "$TEC" run "$name.tec" "${arguments[@]}" --repeat 1 --out out >/dev/null
        compare "$name" "$n" "$@"
    done
}

# A model of operators and a scan alone is a program too.
check rnn words -- scores last
check greedy limit first prompt -- sentence all_keys
check beam limit first -- all scores
check torch_rnn words -- scores last
check torch_greedy prompt limit -- sentence all_keys
check torch_cache first limit -- sentence keys
check torch_beam first limit -- all scores
echo "decoders: ok"
