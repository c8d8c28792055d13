#!/usr/bin/env python3
"""Puts measurements of one machine side by side: Crosswarp's beside its peers'.

    bench/peers/ratios.py FILE...     files of JSON lines, as run.sh, torch_reduce.py, `crosswarp bench shmem`, `reduce` and
                                      `jacobi` write

Rows belong together if `what`, `pes` and `bytes` agree. Of several scopes or block sizes each side shows
its fastest. The ratio says how many times faster Crosswarp is: above 1 it is ahead.
"""

import json
import sys

US, THEM = "crosswarp", ("nvshmem", "nccl", "sweep", "cub", "torch")
# NVSHMEM's signal orders nothing, so both of Crosswarp's stand beside it.
PEER_NAME = {"signal_relaxed_pingpong": "signal_pingpong"}


def read(paths):
    """The fastest row of each (what, pes, bytes) and implementation."""
    best = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError:
                    sys.exit(f"{path}:{number}: not a JSON object: {line.strip()[:80]}")
                if "impl" not in row:
                    continue
                key = (row["what"], row["pes"], row["bytes"])
                other = best.setdefault(key, {}).get(row["impl"])
                if other is None or row["us"] < other["us"]:
                    best[key][row["impl"]] = row
    return best


def figure(row):
    # Rows of schema 1 have it in GB/s, as gbs.
    rate = row["bytes_per_second"] / 1e9 if "bytes_per_second" in row else row.get("gbs")
    # Solves are compared by their times, whatever they move.
    large = rate is not None and row["bytes"] >= 1 << 16 and "sweeps" not in row
    value = f"{rate:.1f} GB/s" if large else f"{row['us']:.2f} us"
    return f"{value} ({row['scope']})" if row.get("scope") else value


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(f"{'what':38} {'PEs':>3} {'bytes':>10}  {'peer':>30}  {'crosswarp':>26}  ratio")
    best = read(sys.argv[1:])
    for (what, pes, size), rows in best.items():
        ours = rows.get(US)
        theirs = best.get((PEER_NAME.get(what, what), pes, size), {})
        for peer in THEM:
            if peer not in theirs:
                continue
            right = figure(ours) if ours else "-"
            ratio = f"{theirs[peer]['us'] / ours['us']:.2f}" if ours else ""
            print(f"{what:38} {pes:3} {size:10}  {peer + ' ' + figure(theirs[peer]):>30}  {right:>26}  {ratio}")


if __name__ == "__main__":
    main()
