"""Votes per CPU-second and peak memory of `route` for each group, forward only and with the backward pass.

Run: python benchmarks/routing.py [--json results/routing.json]. One thread, float32, 32 x 32 capsules, batch 64, two
iterations. Each row runs in its own process, so that no other row contributes to its peak memory, which is what one
step adds to the resident set (read from /proc, hence Linux only). Speed is per CPU time, not wall time, because other
processes may share the machine.
"""

import argparse
import ctypes
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import torch

from equicaps.functional import route
from equicaps.groups import GL, SE2, SE3, SO2, SO3, Product, Scale, Translation

GROUPS = {
    repr(group): group
    for group in (SO2(), SO3(), Translation(3), GL(3), SE2(), SE3(), Scale(), Product(SO2(), Translation(2)))
}
BATCH, OUT, IN, SECONDS = 64, 32, 32, 1.0


def resident(field: str) -> float:
    """The resident set in MiB: VmRSS is the current one, VmHWM the largest since the last reset. Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(name: str, backward: bool) -> dict[str, float | str | bool]:
    """One row of the table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    group = GROUPS[name]
    votes = group.random(BATCH, OUT, IN).requires_grad_(backward)
    activations = torch.rand(BATCH, IN)

    def step() -> None:
        with torch.set_grad_enabled(backward):
            routing = route(group, votes, activations)
            if backward:
                (routing.poses.sum() + routing.activations.sum()).backward()

    ctypes.CDLL("libc.so.6").malloc_trim(0)  # return what creating the votes left allocated
    reset_peak()
    before = resident("VmRSS")
    step()
    used = resident("VmHWM") - before
    start, steps = time.process_time(), 0
    while time.process_time() - start < SECONDS:
        step()
        steps += 1
    rate = steps * BATCH * OUT * IN / (time.process_time() - start)
    return {"group": name, "backward": backward, "votes_per_cpu_second": rate, "peak_mib": used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--row", nargs=2, metavar=("GROUP", "MODE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(arguments.row[0], arguments.row[1] == "backward")))
        return
    rows = []
    print(f"{'group':<12} {'':<18} {'votes / CPU-s':>14} {'peak memory':>12}")
    for name in GROUPS:
        for mode in ("forward", "backward"):
            command = [sys.executable, __file__, "--row", name, mode]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            label = "forward" if mode == "forward" else "forward + backward"
            print(
                f"{name:<12} {label:<18} {row['votes_per_cpu_second']:>14,.0f} {row['peak_mib']:>8.0f} MiB", flush=True
            )
            rows.append(row)
    setting = {
        "batch": BATCH,
        "out_capsules": OUT,
        "in_capsules": IN,
        "iterations": 2,
        "dtype": "float32",
        "threads": 1,
    }
    machine = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"setting": setting, "machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
