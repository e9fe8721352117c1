"""Training: one loop for one process or many, which can be interrupted at any moment and resumed."""

from equicaps.training.checkpoint import has_checkpoint, load_checkpoint
from equicaps.training.config import Budget, Hardware, Intervals, Optimiser, TrainConfig
from equicaps.training.evaluation import AnyAngle, AsTheyAre, Evaluation, LookOnce
from equicaps.training.loop import Result, train
from equicaps.training.progress import Progress

__all__ = [
    "AnyAngle",
    "AsTheyAre",
    "Budget",
    "Evaluation",
    "Hardware",
    "Intervals",
    "LookOnce",
    "Optimiser",
    "Progress",
    "Result",
    "TrainConfig",
    "has_checkpoint",
    "load_checkpoint",
    "train",
]
