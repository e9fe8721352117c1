"""Pure functions: everything a layer does, without its parameters."""

from equicaps.functional.alignment import align, mean_pose, window_positions, windows
from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.capsules import Capsules
from equicaps.functional.image_poses import Taps, gradient_taps, image_poses
from equicaps.functional.moment_routing import MomentRouting, moment_route
from equicaps.functional.planar_routing import PlanarRouting, directions, planar_route
from equicaps.functional.point_choice import PointChoice, choose_points
from equicaps.functional.point_convolution import point_convolution
from equicaps.functional.point_frames import PointPoses, point_frames
from equicaps.functional.point_routing import Neighbours, nearest_neighbours, point_votes, route_points
from equicaps.functional.routing import Agreement, Routing, route
from equicaps.functional.sigma import Linear, Sigma, Sigmoid, Softmax
from equicaps.functional.sparse_convolution import (
    agreement_pool,
    harmonic_convolution,
    harmonic_window,
    spline_convolution,
    spline_window,
)
from equicaps.functional.spline import spline_basis
from equicaps.functional.window_routing import Transformations, route_windows, window_activations, window_votes

__all__ = [
    "Agreement",
    "CapsuleCloud",
    "Capsules",
    "Linear",
    "MomentRouting",
    "Neighbours",
    "PlanarRouting",
    "PointChoice",
    "PointPoses",
    "Routing",
    "Sigma",
    "Sigmoid",
    "Softmax",
    "Taps",
    "Transformations",
    "agreement_pool",
    "align",
    "choose_points",
    "directions",
    "gradient_taps",
    "harmonic_convolution",
    "harmonic_window",
    "image_poses",
    "mean_pose",
    "moment_route",
    "nearest_neighbours",
    "planar_route",
    "point_convolution",
    "point_frames",
    "point_votes",
    "route",
    "route_points",
    "route_windows",
    "spline_basis",
    "spline_convolution",
    "spline_window",
    "window_activations",
    "window_positions",
    "window_votes",
    "windows",
]
