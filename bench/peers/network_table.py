#!/usr/bin/env python3
"""network_table.py ROWS.jsonl: the lines of network.sh as tables, a column a library.

Of each row the median over runs of a run's median and, after a slash, of its mean: where PEs that spin share cores,
most rounds may be short and a few take milliseconds.
"""
import json
import statistics
import sys

rows = {}
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    place = rows.setdefault(row["pes_per_host"], {}).setdefault(row["what"], {})
    place.setdefault(row["impl"], []).append((row["us"], row["mean"]))


def number(us):
    return f"{us:.2f}" if us < 10 else f"{us:.0f}"


def cell(runs):
    if not runs:
        return ""
    return " / ".join(number(statistics.median(of)) for of in zip(*runs))


for pes, table in sorted(rows.items()):
    libraries = list(dict.fromkeys(library for row in table.values() for library in row))
    print(f"\n{pes} PEs a host: µs, median / mean\n")
    print("| | " + " | ".join(libraries) + " |")
    print("|---" * (len(libraries) + 1) + "|")
    for what, row in table.items():
        print(f"| `{what}` | " + " | ".join(cell(row.get(library)) for library in libraries) + " |")
