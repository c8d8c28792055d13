#!/usr/bin/env python3
"""Draws the pictures of the book into docs/images/book: bars from the raw rows of bench/results, a few diagrams, and
what the command `crosswarp` draws of its models.

    docs/figures/draw.py path/to/crosswarp
"""

import json
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
OUT = ROOT / "docs" / "images" / "book"
BLUE, ORANGE, GREY, INK = "#3b6fb6", "#c8702a", "#d9dde3", "#222"


class Picture:
    """Shapes on white, so that it reads on a dark page too."""

    def __init__(self, width, height, about):
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'font-family="sans-serif" font-size="13" fill="{INK}">\n<title>{escape(about)}</title>\n'
            f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>\n'
        )
        self.body = []

    def text(self, x, y, words, anchor="start", size=13, weight="normal", fill=INK):
        self.body.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{fill}">{escape(words)}</text>'
        )

    def box(self, x, y, width, height, fill=GREY, edge="none"):
        self.body.append(
            f'<rect x="{x}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" fill="{fill}" stroke="{edge}"/>'
        )

    def arrow(self, x0, y0, x1, y1, colour=INK):
        self.body.append(
            f'<path d="M{x0} {y0}L{x1} {y1}" stroke="{colour}" stroke-width="1.6" marker-end="url(#tip)" fill="none"/>'
        )

    def save(self, name):
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>\n'
        )
        (OUT / f"{name}.svg").write_text(self.head + tip + "\n".join(self.body) + "\n</svg>\n")


def bars(name, title, rows, unit, roof=None):
    """Horizontal bars; rows: (label, value, own)."""
    left, full, step = 190, 340, 26
    most = max([value for _, value, _ in rows] + ([roof[1]] if roof else []))
    picture = Picture(640, 60 + step * len(rows) + (22 if roof else 0), title)
    picture.text(16, 26, title, weight="bold")
    for place, (label, value, own) in enumerate(rows):
        y = 44 + step * place
        picture.text(left - 8, y + 14, label, "end")
        picture.box(left, y + 2, max(1, full * value / most), 17, ORANGE if own else BLUE)
        words = f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
        picture.text(left + full * value / most + 6, y + 15, f"{words} {unit}")
    if roof:
        x, bottom = left + full * roof[1] / most, 44 + step * len(rows)
        picture.body.append(f'<path d="M{x:.1f} 38V{bottom}" stroke="{INK}" stroke-dasharray="4 3"/>')
        picture.text(x, bottom + 16, roof[0], "end", 12)
    picture.save(name)


def ladder(file, subject, keep=None):
    """(rung, row) in the order of the file, once each."""
    found = {}
    for line in (RESULTS / file).read_text().splitlines():
        row = json.loads(line)
        kind, rung = row["what"].split(": ", 1)
        if kind == subject and rung not in found and (keep is None or rung in keep):
            found[rung] = row
    return found.items()


def gigabytes(row):
    """A second; rows of schema 1 have them under a name of their own."""
    return row["bytes_per_second"] / 1e9 if "bytes_per_second" in row else row["gbs"]


def rates(file, subject, keep=None):
    return [(rung, gigabytes(row), rung == "crosswarp") for rung, row in ladder(file, subject, keep)]


def levels():
    picture = Picture(640, 330, "The levels of a parallel machine, and what each shares")
    rows = [
        ("lane", "its registers", 120),
        ("warp: 32 lanes", "registers, by shuffles", 190),
        ("block: up to 32 warps", "shared memory, a barrier", 260),
        ("cluster: up to 16 blocks", "each other's shared memory", 330),
        ("grid: all blocks of a kernel", "the GPU's memory", 400),
        ("PEs of a host", "symmetric memory, mapped (NVLink)", 470),
        ("PEs of all hosts", "symmetric memory, by messages", 540),
    ]
    for place, (name, shares, width) in enumerate(rows):
        y = 300 - 44 * place - 16
        picture.box(320 - width / 2, y, width, 36, GREY if place < 5 else "#cfe0f5", "#8a94a3")
        picture.text(320, y + 16, name, "middle", 12, "bold")
        picture.text(320, y + 30, shares, "middle", 11)
    picture.save("levels")


def one_sided():
    picture = Picture(640, 230, "A put with a signal: the data are there before the signal")
    for x, name in ((60, "PE 0"), (420, "PE 1")):
        picture.box(x, 30, 160, 170, "#f4f6f9", "#8a94a3")
        picture.text(x + 80, 22, name, "middle", 13, "bold")
        for y, word in ((60, "token"), (110, "arrived")):
            picture.box(x + 30, y, 100, 32, GREY)
            picture.text(x + 80, y + 21, word, "middle")
    picture.arrow(195, 70, 445, 70)
    picture.text(320, 62, "1  data", "middle", 12)
    picture.arrow(195, 126, 445, 126)
    picture.text(320, 118, "2  signal", "middle", 12)
    picture.text(500, 180, "waits for arrived = 1", "middle", 12)
    picture.text(140, 180, "goes on at once", "middle", 12)
    picture.save("one-sided")


def hosts():
    picture = Picture(640, 220, "Two hosts: each has an agent that serves the others")
    for x, first in ((30, 0), (370, 2)):
        picture.box(x, 34, 240, 160, "#f4f6f9", "#8a94a3")
        picture.text(x + 120, 26, f"host {first // 2 + 1}", "middle", 13, "bold")
        for place in (0, 1):
            picture.box(x + 20 + 105 * place, 50, 95, 36, "#cfe0f5")
            picture.text(x + 67 + 105 * place, 73, f"PE {first + place}", "middle")
        picture.box(x + 20, 100, 200, 30, GREY)
        picture.text(x + 120, 120, "shared memory", "middle", 12)
        picture.box(x + 20, 148, 200, 30, GREY)
        picture.text(x + 120, 168, "agent", "middle", 12)
    picture.arrow(200, 86, 388, 160)
    picture.text(320, 110, "put", "middle", 12)
    picture.save("hosts")


def superaccumulator():
    picture = Picture(640, 150, "A superaccumulator: every float lands at its own place")
    for limb in range(8):
        picture.box(40 + 70 * limb, 70, 64, 34, GREY, "#8a94a3")
        picture.text(72 + 70 * limb, 92, f"limb {7 - limb}", "middle", 11)
    for x, words in ((140, "1e16"), (360, "1.0"), (520, "1e-9")):
        picture.text(x, 34, words, "middle")
        picture.arrow(x, 40, x, 68)
    picture.text(320, 132, "integers add in any order; one rounding at the end", "middle", 12)
    picture.save("superaccumulator")


def multigrid():
    picture = Picture(640, 210, "A V-cycle and, before it, full multigrid")
    heights = {0: 40, 1: 85, 2: 130, 3: 175}
    path = [0, 1, 2, 3, 2, 3, 2, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0]
    points = [(40 + 31 * place, heights[level]) for place, level in enumerate(path)]
    line = "L".join(f"{x} {y}" for x, y in points)
    picture.body.append(f'<path d="M{line}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    for x, y in points:
        picture.body.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{BLUE}"/>')
    picture.text(230, 24, "first cycle (full multigrid)", "middle", 12)
    picture.text(515, 24, "a V-cycle", "middle", 12)
    picture.text(10, 205, "top: the grid; each row below has every second point of both axes", size=12)
    picture.save("multigrid")


def scaling():
    measured = {}
    for line in (RESULTS / "jacobi-4xh200-2026-11-22.crosswarp.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("what") == "plane_16384":
            measured[row["pes"]] = row["us"]
    rows = [(f"{pes} GPU" + "s" * (pes > 1), value, True) for pes, value in sorted(measured.items())]
    bars("several-gpus", "A sweep of 16384 x 16384 f32, H200, 2026-11-22", rows, "µs")


def jacobi():
    rows = [(rung, row["us"], rung == "crosswarp") for rung, row in ladder("ladder-h200-2026-11-21.jsonl", "jacobi1d")]
    bars("jacobi", "57 sweeps of 4,194,304 points, H200 (without the first rung, 419,491)", rows[1:], "µs")


def main():
    command = sys.argv[1]
    gpu = "ladder-h200-2026-11-21.jsonl"
    levels()
    one_sided()
    hosts()
    superaccumulator()
    multigrid()
    scaling()
    jacobi()
    sums = ["thread0 per block", "global tree", "interleaved divergent", "interleaved strided", "sequential",
            "warp shuffle", "block shuffle", "grid stride 1", "grid stride 4", "wide loads", "cooperative", "last block",
            "crosswarp", "CUB"]
    bars("sums", "Sum of 16,777,216 f32, H200, 2026-11-21", rates(gpu, "reduce", sums), "GB/s")
    bars("histograms", "256 bins, 67,108,864 samples, H200, 2026-11-21", rates(gpu, "histogram"), "GB/s")
    bars("transposition", "8192 x 8192 f32, H200, 2026-11-21", rates(gpu, "transpose"), "GB/s")
    point = "sum=4.294967296e9,1.073741824e9,921e-6"
    for arguments, name in (
        (["occupancy", "--gpu", "h100", "--threads", "256", "--registers", "64", "--curve", "registers"], "occupancy"),
        (["roofline", "--gpu", "h200", "--point", point], "roofline"),
        (["banks", "--index", "lane * 2"], "banks"),
    ):
        subprocess.run([command, *arguments, "--svg", OUT / f"{name}.svg"], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
