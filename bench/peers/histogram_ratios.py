#!/usr/bin/env python3
"""Histograms side by side: 10^9 samples/s of Crosswarp and its peers, and how many times as fast it is.

    bench/peers/histogram_ratios.py FILE...     JSON lines of `crosswarp bench histogram --json` and histogram.sh
"""

import json
import sys

if len(sys.argv) < 2:
    sys.exit(__doc__)
rows = {}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as lines:
        for row in map(json.loads, filter(str.strip, lines)):
            if row.get("what") == "histogram":
                rows.setdefault((row["bins"], row["distribution"]), {})[row["impl"]] = row["gsamples"]
peers = sorted({impl for row in rows.values() for impl in row} - {"crosswarp"})
print(f"{'bins':>8} {'distribution':>12} {'crosswarp':>10}" + "".join(f" {peer:>8} {'ratio':>6}" for peer in peers))
for (bins, distribution), row in rows.items():
    ours = row.get("crosswarp")
    line = f"{bins:>8} {distribution:>12} {ours:>10.1f}" if ours else f"{bins:>8} {distribution:>12} {'-':>10}"
    for peer in peers:
        theirs = row.get(peer)
        line += f" {theirs:>8.1f} {ours / theirs:>6.1f}" if ours and theirs else f" {'-':>8} {'-':>6}"
    print(line)
