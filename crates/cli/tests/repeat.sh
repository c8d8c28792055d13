#!/usr/bin/env bash
# repeat.sh [N [part]]: looks for tests that depend on the speed of the machine. Beside eight busy
# processes it runs the tests with signals, processes or waits N times (default 20), then the whole suite
# once; with the word "part" the suite is left out. Says what failed, with the logs in target/repeat;
# exit code 1 if anything did.
set -uo pipefail
cd "$(dirname "$0")/../../.."
times=${1:-20}
logs=target/repeat
export CARGO_TERM_COLOR=never CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
rm -rf "$logs" && mkdir -p "$logs" || exit 1

# Package and what of it: all of an executable, or the tests with one of these words in their names.
with_signals=(
    "crosswarp-shmem --lib launch"
    "crosswarp-shmem --test launcher"
    "crosswarp-shmem --test no_hang"
    "crosswarp-shmem --test conformance wait signal"
    "crosswarp-capi --test endings"
    "crosswarp-capi --test interface alone"
    "crosswarp-capi --test programs signal wait threads"
    "crosswarp-cli --test command"
    "crosswarp-cli --test solve interrupt reader_that_goes"
    "crosswarp-solve --test checkpoints interrupt"
)

# choose LINE: sets `arguments` to what cargo is to test, and `name` to what it is called here.
choose() {
    local package kind executable= words
    read -r package kind words <<<"$1"
    # The first word after --test is the executable.
    [ "$kind" != --test ] || read -r executable words <<<"$words"
    name=$package-${executable:-lib}
    # shellcheck disable=SC2206 # no executable is no argument, and words are meant
    arguments=(-p "$package" "$kind" $executable -- $words)
}

# All that is built is built before the load: a package alone may have other features than in the workspace.
cargo test --workspace --no-run -q || exit 1
for line in "${with_signals[@]}"; do
    choose "$line"
    cargo test --no-run -q "${arguments[@]}" || exit 1
done

busy=()
trap 'kill "${busy[@]}" 2>/dev/null' EXIT
for _ in 1 2 3 4 5 6 7 8; do
    sh -c 'while :; do :; done' &
    busy+=($!)
done

failed=0
# attempt NAME ARGUMENT...: cargo test with these arguments; says which tests failed.
attempt() {
    local log="$logs/$1.log" name=$1
    shift
    if cargo test --no-fail-fast "$@" >"$log" 2>&1; then
        rm "$log"
        return
    fi
    failed=$((failed + 1))
    echo "$name: $(grep -E '^test .* FAILED$' "$log" | cut -d' ' -f2 | sort -u | paste -sd' ') ($log)"
}

for ((i = 1; i <= times; i++)); do
    for line in "${with_signals[@]}"; do
        choose "$line"
        attempt "$name-$i" "${arguments[@]}"
    done
    echo "round $i of $times: $failed failed so far"
done
if [ "${2:-}" != part ]; then
    attempt suite --workspace
fi
echo "$failed of the runs failed"
[ "$failed" -eq 0 ]
