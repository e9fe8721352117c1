"""Radio galaxies."""
import sys, time
from pathlib import Path
from equicaps.experiments.galaxies import TRIALS, trained
for n,t in TRIALS.items():
    r=trained(n.replace(" ","_"),t,Path("results"),None)
    print(n,r["cpu_seconds"],r["figures"],flush=True)
