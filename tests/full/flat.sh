#!/bin/bash
# flat -- a million runs of one instance: memory stays as it was after the first ones (tests/lang/flat.c).
set -eu
: "${TEC_BUILD_DIR:?}"
TEC_RUNS=1000000 "$TEC_BUILD_DIR/tests/test_lang_flat" --timeout 3000 --filter 'flat/runs_*'
