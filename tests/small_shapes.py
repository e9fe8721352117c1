"""A model of shapes that is there at once: untrained, but with statistics of solids, so that most poses are defined."""

from functools import cache

import numpy as np
import torch

from equicaps.data import solid_shapes
from equicaps.data.shapes import POINTS
from equicaps.inference.model_files import save_model
from equicaps.inference.point_card import PointCard
from equicaps.inference.point_model import PointModel
from equicaps.models import PointArchitecture
from equicaps.training import Budget, TrainConfig
from equicaps.training.about import about_shapes
from equicaps.training.shape_setup import SHAPE_DEFAULTS

SOLIDS = solid_shapes(15)


@cache
def parts(preset="points"):
    """The network and the content of its model file."""
    network = PointArchitecture(preset, 5).build(seed=0)
    network.train()(SOLIDS.sample(300))
    config = TrainConfig(Budget(steps=1), PointArchitecture(preset, 5)).to_dict()
    content = {"config": config, "classes": list(SOLIDS.classes), "data": "solids", "figures": {"accuracy": 20.0}}
    found = about_shapes(network.eval(), SHAPE_DEFAULTS, SOLIDS, None, {}, points=POINTS)
    return network.eval(), content | found | {"points": 300}


def point_model():
    network, content = parts()
    return PointModel(network, PointCard.of("solids", content))


def save_point_network(path):
    save_model(path, *parts())
    return path


def write_off(path, triangles):
    """A mesh with three corners for each face."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners, count = triangles.reshape(-1, 3), len(triangles)
    lines = ["OFF", f"{3 * count} {count} 0", *(" ".join(f"{x:.9g}" for x in row) for row in corners.tolist())]
    lines += [f"3 {3 * face} {3 * face + 1} {3 * face + 2}" for face in range(count)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_folder(folder, count=20, seed=0):
    """Solids in one folder for each class; those of one class are points."""
    shapes, generator = solid_shapes(count, seed), torch.Generator().manual_seed(seed)
    for number, (surface, label) in enumerate(zip(shapes.surfaces, shapes.labels.tolist(), strict=True)):
        path = folder / shapes.classes[label] / f"{number}"
        if label == 4:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(path.with_suffix(".xyz"), surface.sample(400, generator).numpy())
        else:
            write_off(path.with_suffix(".off"), surface.triangles)
    return folder
