#!/bin/sh
# Fails when the path to a host got slower: sh check-path.sh FAR RATE BASELINE
#
# FAR runs `linerate serve`, whose key is in LINERATE_KEY. RATE is the least that the path must carry, as in 9G. BASELINE is
# the file of an earlier measurement; the first run makes it. The result is in path.json.
#
# Exit status: 0 passes, 3 nothing to compare with, 4 too slow, and the others of linerate measure.
set -u
far=$1 least=$2 baseline=$3

set -- --test stream --duration "${DURATION:-10}" --interval "${INTERVAL:-1}" --fail-below "$least"
if [ -e "$baseline" ]; then
	set -- "$@" --baseline "$baseline" --tolerance "${TOLERANCE:-0.05}"
fi
linerate measure "$far" "$@" --no-store --json --output path.json
status=$?

if [ "$status" -eq 0 ] && [ ! -e "$baseline" ]; then
	cp path.json "$baseline"
fi
if [ -e path.json ]; then
	linerate report ./path.json
fi
exit "$status"
