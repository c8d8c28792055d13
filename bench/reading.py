#!/usr/bin/env python3
"""How fast commands read an NPY file that the system has in memory, beside the rate at which memory is read.

    bench/reading.py [--gib 4] [--threads 1,2,4,8,16] [--turns 5] [--folder /dev/shm] NAME=crosswarp [NAME=crosswarp ...]

Each turn runs every command once at every number of PEs, one after the other, so that what else the machine does hits
all alike; the figures are medians. The read rate is taken before and after. Lines of JSON, then a table. Needs a C compiler for the read rate (bench/read_rate.c);
without one, --read-rate PROGRAM.
"""

import argparse
import array
import json
import os
import statistics
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BLOCK = 1 << 20


def write_npy(path, elements):
    """An array of f32, -8 to 8, made without NumPy."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({elements},), }}"
    length = -(-(10 + len(head) + 1) // 64) * 64 - 10
    block = array.array("f", ((k * 7919 % 16001) / 1000 - 8 for k in range(BLOCK // 4))).tobytes()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", length) + head.ljust(length - 1).encode() + b"\n")
        for _ in range(4 * elements // BLOCK):
            file.write(block)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gib", type=int, default=4)
    arguments.add_argument("--threads", default="1,2,4,8,16")
    arguments.add_argument("--turns", type=int, default=5)
    arguments.add_argument("--folder", default=None, help="where the file goes [default: the temporary folder]")
    arguments.add_argument("--read-rate", default=None)
    arguments.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    given = arguments.parse_args()
    threads = [n for n in map(int, given.threads.split(",")) if n <= (os.cpu_count() or 1)]
    commands = dict(command.split("=", 1) for command in given.commands)
    works = {
        "reduce sum": ["reduce", "sum"],
        "histogram": ["histogram", "--range", "-8:8"],
    }
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        file, program = Path(folder) / "x.npy", given.read_rate
        if program is None:
            program = str(Path(folder) / "read_rate")
            subprocess.run(
                ["cc", "-O3", "-march=native", "-pthread", HERE / "read_rate.c", "-o", program], check=True
            )
        write_npy(file, given.gib << 28)
        found = {}
        for turn in range(given.turns + 1):
            for n in threads:
                if turn in (0, given.turns):
                    rate = subprocess.run([program, str(n)], check=True, capture_output=True, text=True).stdout
                    found.setdefault(("memory", "read rate", n), []).append(float(rate))
                for name, command in commands.items():
                    for work, words in works.items():
                        line = [command, *words, str(file), "--pes", str(n), "--json"]
                        out = subprocess.run(line, check=True, capture_output=True, text=True).stdout
                        rate = json.loads(out)["bytes_per_second"] / 1e9
                        # The first turn brings the file in.
                        if turn:
                            found.setdefault((name, work, n), []).append(rate)
    for (name, work, n), rates in found.items():
        row = {"impl": name, "what": work, "pes": n, "bytes_per_second": round(1e9 * statistics.median(rates))}
        row |= {"least": round(1e9 * min(rates)), "most": round(1e9 * max(rates)), "samples": len(rates)}
        print(json.dumps(row))
    print(f"\n{'GB/s':28}" + "".join(f"{n:>9}" for n in threads))
    for name, work in dict.fromkeys((name, work) for name, work, _ in found):
        line = "".join(f"{statistics.median(found[name, work, n]):>9.1f}" for n in threads)
        print(f"{name + ', ' + work:28}{line}")


if __name__ == "__main__":
    main()
