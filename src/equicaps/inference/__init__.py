"""Using trained models: predict, rotate images upright, audit, export."""

from equicaps.inference.canonicalizer import Canonicalizer
from equicaps.inference.card import CONVENTION, Card
from equicaps.inference.model import PoseModel
from equicaps.inference.model_files import SHIPPED, load, load_image_model, save_model
from equicaps.inference.point_card import POINT_CONVENTION, PointCard
from equicaps.inference.point_model import PointModel
from equicaps.inference.point_prediction import PointAnswer, PointPrediction
from equicaps.inference.prediction import Answer, Prediction

__all__ = [
    "CONVENTION",
    "POINT_CONVENTION",
    "SHIPPED",
    "Answer",
    "Canonicalizer",
    "Card",
    "PointAnswer",
    "PointCard",
    "PointModel",
    "PointPrediction",
    "PoseModel",
    "Prediction",
    "load",
    "load_image_model",
    "save_model",
]
