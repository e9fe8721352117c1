"""Trained models and what people do with them: predict, set upright."""

from equicaps.pretrained.card import CONVENTION, Card
from equicaps.pretrained.load import SHIPPED, load
from equicaps.pretrained.model import Prediction, TurningModel

__all__ = ["CONVENTION", "SHIPPED", "Card", "Prediction", "TurningModel", "load"]
