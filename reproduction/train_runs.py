"""Train what the tables need, one after the other, resuming where it was left.

Run: EQUICAPS_DATA=... python experiments/train_runs.py NAME... (one process each; start several on several cores).
Writes results/runs/NAME.json and NAME.safetensors. Without a name: lists all with their state.
With --measure-again before the names: trains nothing, but measures finished trainings with the code as it is now.
"""

import sys
import time
from pathlib import Path

from equicaps.training import Progress
from reproduction.trainings import RUNS, RUNS_FOLDER, execute, measure_again

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main(names: list[str]) -> int:
    again = names[:1] == ["--measure-again"]
    names = names[again:]
    if unknown := set(names) - set(RUNS):
        print(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(RUNS)}")
        return 2
    if not names:
        for name in RUNS:
            done = (RESULTS / RUNS_FOLDER / f"{name}.json").exists()
            started = (RESULTS / "unfinished" / name).exists()
            print(f"{'done' if done else 'unfinished' if started else 'missing':<11} {name}")
        return 0
    for name in names:
        print(time.strftime("%H:%M"), name, flush=True)
        record = measure_again(name, RESULTS) if again else execute(name, RESULTS, watch=show)
        print(time.strftime("%H:%M"), name, record["figures"], flush=True)
    return 0


def show(progress: Progress) -> None:
    if progress.evaluation:
        print(f"  step {progress.step:,} of {progress.steps:,}: {dict(progress.evaluation)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
