"""Images per second of one process and of several, one thread each, on this machine.

Run on an idle machine: python benchmarks/processes.py [--processes 2] [--batch 64] [--repeats 3]

Trains the flagship on the embedded digits, turned on the fly: one process with BATCH views in a step, then several with
BATCH views each (the doubled batch), in turn; wall time of the steps after a warm-up, best of the repeats. Also with
one batch shared by all processes. Images per CPU-second tell, also on a busy machine, what the processes' talking
costs. Writes results/processes.json.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from equicaps.data import embedded_digits
from equicaps.images import ROTATED
from equicaps.models import Architecture
from equicaps.training import Budget, Hardware, Intervals, TrainConfig, train
from equicaps.training.log import provenance

WARM_UP = 8


def speed(preset: str, processes: int, batch: int, steps: int) -> tuple[float, float]:
    """Images per second of wall time, and per CPU-second of all processes together."""
    times = []
    config = TrainConfig(
        Budget(steps=WARM_UP + steps),
        model=Architecture(preset),
        batch=batch,
        intervals=Intervals(log_steps=10_000, evaluations=1),
        hardware=Hardware(processes=processes, device="cpu"),
    )

    def watch(_: object) -> None:
        times.append(time.monotonic())

    with tempfile.TemporaryDirectory() as folder:
        result = train(config, embedded_digits("train"), ROTATED, folder=folder, watch=watch)
    return steps * batch / (times[-1] - times[WARM_UP - 1]), result.images / (60 * result.cpu_minutes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="steerable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="views in a step of one process")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    many, batch = arguments.processes, arguments.batch
    load = os.getloadavg()[0]
    print(f"load before the start: {load:.2f} on {os.cpu_count()} cores")
    cases = {"one": (1, batch), "several": (many, batch * many), "several, shared batch": (many, batch)}
    found: dict[str, list[float]] = {name: [] for name in cases}
    efficiency: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(arguments.repeats):
        for name, (processes, views) in cases.items():
            wall, cpu = speed(arguments.preset, processes, views, arguments.steps)
            found[name].append(wall)
            efficiency[name].append(cpu)
            print(f"{name}: {processes} x {views // processes} views, {wall:.1f} images/s, {cpu:.1f} per CPU-second")
    best = {name: max(values) for name, values in found.items()}
    ratios = {name: best[name] / best["one"] for name in cases}
    print(", ".join(f"{name}: {value:.2f}x" for name, value in ratios.items()))
    record = {
        "command": "python benchmarks/processes.py",
        "settings": {name: str(value) for name, value in vars(arguments).items()},
        "load_before": load,
        "cores": os.cpu_count(),
        "images_per_second": found,
        "images_per_cpu_second": efficiency,
        "best": best,
        "ratio_to_one": ratios,
        **provenance(),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "processes.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
