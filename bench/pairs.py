#!/usr/bin/env python3
"""Two builds of `crosswarp`, measured in turns: which rows of a bench have changed?

    bench/pairs.py BEFORE AFTER [--pairs 9] [--limit 2] [--raw FILE] -- reduce --device 0

runs `BEFORE bench … --json` and `AFTER bench … --json` in alternation (which of the two begins alternates,
too), and compares every row by the median of the pairs' ratios after/before, so that drift of the machine
falls on both. A row is named where that median is beyond LIMIT percent and three quarters of the pairs at
least agree in its direction; the exit code is 1 where one has become slower.
"""

import argparse
import json
import statistics
import subprocess
import sys

# What describes a run and not the measurement; figures are the numbers that are not whole.
ABOUT = {"schema", "samples", "calls", "repetitions", "iterations", "about", "version", "machine", "commit", "strategy"}


def rows(program, bench):
    out = subprocess.run([program, "bench", *bench, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    found = {}
    for line in out.stdout.splitlines():
        row = json.loads(line)
        name = {k: v for k, v in row.items() if k not in ABOUT and not isinstance(v, float)}
        found[" ".join(f"{k}={v}" for k, v in sorted(name.items()) if v != "")] = row["us"]
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before")
    options.add_argument("after")
    options.add_argument("bench", nargs="+", help="the bench and its arguments, behind --")
    options.add_argument("--pairs", type=int, default=9)
    options.add_argument("--limit", type=float, default=2.0, help="percent")
    options.add_argument("--raw", help="a file for every pair's times in µs, one JSON object a row")
    given = options.parse_args()

    pairs = {}
    for turn in range(given.pairs):
        programs = [given.before, given.after]
        if turn % 2:
            programs.reverse()
        taken = {program: rows(program, given.bench) for program in programs}
        before, after = taken[given.before], taken[given.after]
        if before.keys() != after.keys():
            sys.exit(f"pairs.py: rows of one build only: {sorted(before.keys() ^ after.keys())}")
        for name, us in before.items():
            pairs.setdefault(name, []).append((us, after[name]))

    if given.raw:
        with open(given.raw, "w", encoding="utf-8") as raw:
            for name, times in pairs.items():
                raw.write(json.dumps({"row": name, "before_after_us": times}) + "\n")

    slower = 0
    for name, times in pairs.items():
        ratios = [after / before for before, after in times]
        median = statistics.median(ratios)
        percent = 100 * (median - 1)
        agree = sum((ratio > 1) == (median > 1) for ratio in ratios)
        if abs(percent) > given.limit and 4 * agree >= 3 * len(ratios):
            slower += percent > 0
            before = statistics.median(us for us, _ in times)
            after = statistics.median(us for _, us in times)
            print(f"{percent:+6.1f} %  {before:12.3f} -> {after:12.3f} us  {agree}/{len(ratios)}  {name}")
    print(f"{len(pairs)} rows, {given.pairs} pairs: {slower} slower by more than {given.limit:g} %")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
