"""Images per second of one process and of several, one thread each, on this machine.

Run on an idle machine: python benchmarks/processes.py [--processes 2] [--batch 64] [--repeats 3]

Trains the flagship on the embedded digits, rotated on the fly: one process with BATCH views in a step, several with
BATCH views each, and several that share BATCH views, one case after another; torchrun starts the processes. Measures
the wall time of the steps after a warm-up and takes the best of the repeats. Images per CPU-second show, even on a busy
machine, what the communication between the processes costs. Writes results/processes.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from equicaps.data import embedded_digits
from equicaps.images import ROTATED
from equicaps.models import Architecture
from equicaps.training import Budget, Hardware, Intervals, TrainConfig, train
from equicaps.training.log import provenance

WARM_UP = 8


def measure(preset: str, batch: int, steps: int, folder: Path) -> None:
    """In each process: train, and write images per second of wall time, and per CPU-second of all processes."""
    times = []
    config = TrainConfig(
        Budget(steps=WARM_UP + steps),
        model=Architecture(preset),
        batch=batch,
        intervals=Intervals(log_steps=10_000, evaluations=1),
        hardware=Hardware(device="cpu"),
    )

    def watch(_: object) -> None:
        times.append(time.monotonic())

    result = train(config, embedded_digits("train"), ROTATED, folder=folder, watch=watch)
    if times:  # only the first process is watched
        speeds = [steps * batch / (times[-1] - times[WARM_UP - 1]), result.images / (60 * result.cpu_minutes)]
        (folder / "speeds.json").write_text(json.dumps(speeds))


def speed(preset: str, processes: int, batch: int, steps: int) -> tuple[float, float]:
    """Images per second of wall time, and per CPU-second of all processes together."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    with tempfile.TemporaryDirectory() as folder:
        words = [f"--nproc-per-node={processes}", f"--log-dir={os.devnull}", __file__, "--measure", folder]
        words += ["--preset", preset, "--batch", str(batch), "--steps", str(steps)]
        subprocess.run([*torchrun, *words], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
        wall, cpu = json.loads((Path(folder) / "speeds.json").read_text())
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="steerable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="views in a step of one process")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)  # how this program starts itself
    arguments = parser.parse_args()
    many, batch = arguments.processes, arguments.batch
    if arguments.measure:
        measure(arguments.preset, batch, arguments.steps, arguments.measure)
        return
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
        "settings": {name: str(value) for name, value in vars(arguments).items() if name != "measure"},
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
