#!/usr/bin/env python3
"""network_table.py ROWS.jsonl: the lines of network.sh or network_here.sh as tables, a column a library.

Of each row the median over runs of a run's median and, after a slash, of its mean: where PEs that spin share cores,
most rounds may be short and a few take milliseconds. Rows of network_here.sh come with the goals for Crosswarp, each
beside the median of what its runs reached; `raw` is the bare connection's round trip in the same run.
"""
import json
import statistics
import sys

rows, runs, ends, idle = {}, {}, {}, []
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    if row["what"] == "ends":
        ends.setdefault(row["after"], []).append((row["seconds"], row["until_empty"]))
        continue
    place, pes = row.get("place", ""), row["pes_per_host"]
    if row["what"] == "idle_launcher":
        idle.append(row["percent"])
        continue
    table = rows.setdefault((place, pes), {})
    table.setdefault(row["what"], {}).setdefault(row["impl"], []).append((row["us"], row["mean"]))
    if row["impl"] == "crosswarp" and "run" in row:
        runs.setdefault((place, pes), {}).setdefault(row["run"], {})[row["what"]] = row["us"]


def number(us):
    return f"{us:.2f}" if us < 10 else f"{us:.0f}"


def cell(runs):
    if not runs:
        return ""
    return " / ".join(number(statistics.median(of)) for of in zip(*runs))


for (place, pes), table in sorted(rows.items()):
    libraries = list(dict.fromkeys(library for row in table.values() for library in row))
    print(f"\n{place + ', ' if place else ''}{pes} PEs a host: µs, median / mean\n")
    print("| | " + " | ".join(libraries) + " |")
    print("|---" * (len(libraries) + 1) + "|")
    for what, row in table.items():
        print(f"| `{what}` | " + " | ".join(cell(row.get(library)) for library in libraries) + " |")

RAW = "tcp_round_trip"
# Of one run: PEs a host, what it is, what it reached, and at most what it is to reach.
GOALS = [
    (1, "get of 8 B − raw, µs", lambda run: run["get_8"] - run[RAW], 8),
    (1, "fetch_add of 8 B − raw, µs", lambda run: run["fetch_add_8"] - run[RAW], 8),
    (1, "put of 8 B and quiet − raw, µs", lambda run: run["put_8_quiet"] - run[RAW], 15),
    (1, "a put among a hundred, µs", lambda run: run["puts_of_100"], 2),
    (1, "put_signal there and back, awake, µs", lambda run: run["put_signal_there_and_back"], 30),
    (1, "put_signal there and back, asleep, µs", lambda run: run["put_signal_to_sleepers"], 60),
    (1, "barrier / raw", lambda run: run["barrier"] / run[RAW], 1.5),
    (1, "put of 4 MiB / a TCP stream's time", lambda run: run["put_4_mib_quiet"] / run["tcp_4_mib"], 1.25),
    (8, "barrier, µs", lambda run: run["barrier"], 5000),
]
for (place, pes), of_runs in sorted(runs.items()):
    for for_pes, what, reached, goal in GOALS:
        if for_pes != pes:
            continue
        # A run that was ended lacks its last rows.
        all_reached = []
        for run in of_runs.values():
            try:
                all_reached.append(reached(run))
            except KeyError:
                pass
        if all_reached:
            median = statistics.median(all_reached)
            low, high = min(all_reached), max(all_reached)
            said = "reached" if median <= goal else "MISSED"
            print(f"\n{said}: {place or 'here'}, {pes} PEs a host: {what}: {median:.2f} ({low:.2f} to {high:.2f}), goal {goal}", end="")
if runs:
    print()

# Every row of ours against theirs, where all share two processors.
for (place, pes), table in sorted(rows.items()):
    if place != "two" or pes != 2:
        continue
    for what, row in table.items():
        ours = row.get("crosswarp")
        for library, theirs in row.items():
            if not ours or library.startswith("crosswarp"):
                continue
            mean = [statistics.median(mean for _, mean in runs) for runs in (ours, theirs)]
            if mean[0] > mean[1]:
                print(f"behind {library} in the mean of `{what}`: {number(mean[0])} and {number(mean[1])} µs")
if idle:
    print(f"\na host's launcher, with its agent, while PEs sleep: {max(idle):.3f} % of a processor at most, goal 0.5")
for after, times in ends.items():
    pes, empty = (statistics.median(of) for of in zip(*times))
    print(f"after {after} PEs went on for {pes:.2f} s ({max(times)[0]:.2f} at most), goal 6; something did for {empty:.2f}")
