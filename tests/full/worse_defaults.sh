#!/bin/bash
# worse_defaults -- tuning a network whose schedules were made worse on purpose makes the network 1.3 times as fast at least.
set -eu
: "${TEC:?}"
python3 tests/full/worse_defaults.py "$TEC" 60
