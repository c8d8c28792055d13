#!/usr/bin/env python3
"""table.py FILE: run.sh's lines as a table.

Microseconds per iteration, medians over the rounds. The ratio says how many times faster Crosswarp is: the median of the
rounds' ratios, with the smallest and the largest. Ends with 1 if the two libraries' values differ in a row whose values are
exact, if a row is missing on one side, or if Crosswarp is slower in a row.
"""

import json
import statistics
import sys

OURS, THEIRS = "crosswarp", "nvshmem"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = {}
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "impl" not in row:
                print(", ".join(f"{name}: {value}" for name, value in row.items()))
                continue
            key = (row["what"], row["scope"], row["pes"], row["bytes"])
            rows.setdefault(key, {}).setdefault(row["round"], {})[row["impl"]] = row
    wrong, slower = [], []
    print(f"{'what':27} {'scope':7}{'PEs':>4}{'bytes':>10}{'NVSHMEM us':>12}{'Crosswarp us':>14}   ratio (least to most)   values")
    for key, rounds in rows.items():
        what, scope, pes, size = key
        name = f"{what:27} {scope:7}{pes:4}{size:10}"
        pairs = [(both[THEIRS], both[OURS]) for both in rounds.values() if len(both) == 2]
        if not pairs:
            print(f"{name}  only {', '.join(sorted({impl for both in rounds.values() for impl in both}))}")
            wrong.append(key)
            continue
        theirs = statistics.median(pair[0]["us"] for pair in pairs)
        ours = statistics.median(pair[1]["us"] for pair in pairs)
        ratios = sorted(pair[0]["us"] / pair[1]["us"] for pair in pairs)
        ratio = statistics.median(ratios)
        values = {pair[side]["values"] for pair in pairs for side in (0, 1)}
        same = "same" if len(values) == 1 else "differ" if pairs[0][0]["exact"] else "in bound"
        print(f"{name}{theirs:12.2f}{ours:14.2f}   {ratio:5.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}){'':8}{same}")
        if same == "differ":
            wrong.append(key)
        if ratio < 1:
            slower.append(f"{what}, {scope}, {pes} PEs, {size} bytes: {ratio:.2f}")
    least = min((len(rounds) for rounds in rows.values()), default=0)
    print(f"{len(rows)} rows, {least} rounds or more each; {len(wrong)} with other values or one side only; {len(slower)} slower")
    for line in slower:
        print(f"  slower: {line}")
    sys.exit(1 if wrong or slower or not rows else 0)


if __name__ == "__main__":
    main()
