"""Using trained models: predict, rotate images upright, audit, export."""

from equicaps.inference.canonicalizer import Canonicalizer
from equicaps.inference.card import CONVENTION, Card
from equicaps.inference.model import PoseModel
from equicaps.inference.model_files import SHIPPED, load, save_model
from equicaps.inference.prediction import Answer, Prediction

__all__ = ["CONVENTION", "SHIPPED", "Answer", "Canonicalizer", "Card", "PoseModel", "Prediction", "load", "save_model"]
