"""Pure functions: everything a layer does, without its parameters."""

from equicaps.functional.capsules import Capsules
from equicaps.functional.routing import Agreement, Routing, route
from equicaps.functional.sigma import Linear, Sigma, Sigmoid, Softmax

__all__ = ["Agreement", "Capsules", "Linear", "Routing", "Sigma", "Sigmoid", "Softmax", "route"]
