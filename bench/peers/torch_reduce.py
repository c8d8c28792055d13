#!/usr/bin/env python3
"""PyTorch's sum of arrays in GPU memory, measured as `crosswarp bench reduce` measures its own: one JSON line a
row. What cold, hot, graph and stream mean is said in crates/lab/src/bench/reduce.rs.

    python3 bench/peers/torch_reduce.py
"""

import json

import torch

COLD_BYTES = 512 << 20
MOST_CALLS = 100
COUNTED = 9  # repetitions that count, after one that does not

TYPES = {"f32": torch.float32, "f16": torch.float16, "f64": torch.float64}


def row(name, x, elements, calls, stream, flush):
    size = x.element_size()
    step = (elements * size + 4095) // 4096 * 4096 // size
    iterations = min(max(COLD_BYTES // (step * size), 2), MOST_CALLS)
    places = max(x.numel() // step, 1)
    inputs = [x[place * step : place * step + elements] for place in range(min(places, iterations))]
    if calls == "hot_graph":
        inputs = inputs[:1]
    result = torch.empty((), dtype=x.dtype, device="cuda")

    def every():
        for call in range(iterations):
            torch.sum(inputs[call % len(inputs)], dim=0, out=result)

    every()  # allocates what it needs
    stream.synchronize()
    graph = None
    if calls != "cold_stream":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            every()
    times = []
    for repetition in range(COUNTED + 1):
        if calls != "hot_graph":
            flush.max()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        graph.replay() if graph else every()
        end.record(stream)
        end.synchronize()
        if repetition:
            times.append(start.elapsed_time(end) * 1e3 / iterations)
    times.sort()
    bytes_ = elements * size
    us = times[COUNTED // 2]
    print(
        json.dumps(
            {
                "impl": "torch",
                "version": torch.__version__,
                "what": f"reduce_sum_{name}_{calls}",
                "pes": 1,
                "bytes": bytes_,
                "scope": "",
                "iterations": iterations,
                "repetitions": COUNTED,
                "us": round(us, 3),
                "us_min": round(times[0], 3),
                "us_max": round(times[-1], 3),
                "bytes_per_second": float(f"{1e6 * bytes_ / us:.5g}"),
            }
        ),
        flush=True,
    )


def main():
    stream = torch.cuda.Stream()
    generator = torch.Generator(device="cuda").manual_seed(1)
    with torch.cuda.stream(stream):
        flush = torch.zeros(COLD_BYTES // 4, dtype=torch.int32, device="cuda")
        for name, dtype in TYPES.items():
            largest = 1 << 28
            x = torch.rand(max(COLD_BYTES // dtype.itemsize, largest), generator=generator, device="cuda", dtype=dtype)
            for exponent in range(10, 29, 2):
                for calls in ["cold_graph", "hot_graph", "cold_stream"]:
                    row(name, x, 1 << exponent, calls, stream, flush)
            del x


if __name__ == "__main__":
    main()
