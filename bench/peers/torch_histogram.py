#!/usr/bin/env python3
"""torch.bincount on the samples of `crosswarp bench histogram`: one JSON line a row.

    python3 bench/peers/torch_histogram.py [LOG2]
"""

import json
import sys

import torch

n = 1 << (int(sys.argv[1]) if len(sys.argv) > 1 else 27)
generator = torch.Generator(device="cuda").manual_seed(1)
unit = torch.rand(n, device="cuda", generator=generator, dtype=torch.float64)
places = {
    "uniform": unit,
    "one-hot": torch.full_like(unit, 0.37),
    "skewed": unit**4,
}
for bins in [64, 256, 2048, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304]:
    for distribution, place in places.items():
        samples = (place * bins).to(torch.int32)
        count = lambda: torch.bincount(samples, minlength=bins)
        if int(count().sum()) != n:
            sys.exit(f"{bins} bins, {distribution}: wrong counts")
        times = []
        for _ in range(5):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            count()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        times.sort()
        row = {
            "impl": "torch",
            "version": torch.__version__,
            "what": "histogram",
            "dtype": "i32",
            "elements": n,
            "bins": bins,
            "distribution": distribution,
            "gsamples": n / times[2] / 1e3,
            "us": times[2],
            "us_min": times[0],
            "us_max": times[-1],
            "gpu": torch.cuda.get_device_name(),
        }
        print(json.dumps(row), flush=True)
