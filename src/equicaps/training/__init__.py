"""Training: one loop for one process or many, which can be interrupted at any moment and resumed."""

from equicaps.training.checkpoint import has_checkpoint, load_checkpoint
from equicaps.training.config import Budget, Hardware, Intervals, Optimiser, TrainConfig
from equicaps.training.distributed import World
from equicaps.training.evaluation import AnyAngle, AsTheyAre, Evaluation
from equicaps.training.launch import train
from equicaps.training.loop import Progress, Result, fit

__all__ = [
    "AnyAngle",
    "AsTheyAre",
    "Budget",
    "Evaluation",
    "Hardware",
    "Intervals",
    "Optimiser",
    "Progress",
    "Result",
    "TrainConfig",
    "World",
    "fit",
    "has_checkpoint",
    "load_checkpoint",
    "train",
]
