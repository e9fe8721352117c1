"""Training: one loop for one process or many, that can be interrupted at any moment and resumed."""

from equicaps.training.checkpoint import TrainedModel, has_checkpoint, load_checkpoint, load_model, save_model
from equicaps.training.config import Budget, Hardware, Intervals, Model, Optimiser, TrainConfig
from equicaps.training.distributed import World
from equicaps.training.errors import CheckpointError, DamagedCheckpointError, MisuseError, TrainingError
from equicaps.training.evaluation import AnyAngle, AsTheyAre, Evaluation
from equicaps.training.launch import train
from equicaps.training.loop import Progress, Result, fit

__all__ = [
    "AnyAngle",
    "AsTheyAre",
    "Budget",
    "CheckpointError",
    "DamagedCheckpointError",
    "Evaluation",
    "Hardware",
    "Intervals",
    "MisuseError",
    "Model",
    "Optimiser",
    "Progress",
    "Result",
    "TrainConfig",
    "TrainedModel",
    "TrainingError",
    "World",
    "fit",
    "has_checkpoint",
    "load_checkpoint",
    "load_model",
    "save_model",
    "train",
]
