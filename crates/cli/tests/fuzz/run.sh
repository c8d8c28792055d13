#!/usr/bin/env bash
# Feeds every reader of the command with changed inputs for a minute each, or for $1 seconds, other ones each
# time, within 4 GB of address space. See crates/cli/src/fuzz.rs.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
cargo test -p crosswarp-cli --bin crosswarp -j2 --no-run
export CROSSWARP_FUZZ_SECONDS=${1:-60} CROSSWARP_HEAP=64M
# Threads would add to the address space: their stacks and heaps.
export MALLOC_ARENA_MAX=2
ulimit -v 4000000
cargo test -p crosswarp-cli --bin crosswarp -j2 -- --nocapture --test-threads=1 fuzz::
