"""Classify shapes that are rotated in space, and rotate them back, with the model that ships with the package.

The shapes are chairs of a seeded generator, which the model, trained on ModelNet10, has never seen. Each is rotated at
random, several times. Prints what the rotations change (only the predicted rotation, which follows), and writes a
picture: rotated chairs with their predicted frames, above the same chairs rotated back. Exits with 1 if a rotation
changes a prediction. Run: python examples/space.py
"""

import sys
from pathlib import Path

import roma
import torch
from rich.console import Console
from rich.table import Table

import equicaps
from equicaps.data import solid_shapes
from equicaps.drawing import Pair, contact_sheet, draw_shape

PICTURE = Path("space.png")
CHAIRS, ROTATIONS, SHOWN = 12, 8, 6
SIDE = 192


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, solids = equicaps.load("modelnet10"), solid_shapes(5 * CHAIRS)
    chairs = solids.take((solids.labels == solids.classes.index("chair")).nonzero().squeeze(1)).sample(1024)
    first = model.predict(chairs)
    changed, score, follow = 0, 0.0, 0.0
    for _ in range(ROTATIONS):
        turn = roma.random_rotmat(len(chairs))
        after = model.predict(chairs @ turn.mT)
        changed += int((after.labels != first.labels).sum())
        score = max(score, float((after.output.scores - first.output.scores).abs().max()))
        angles = roma.rotmat_geodesic_distance(after.rotations, turn @ first.rotations)
        follow = max(follow, float(angles.nan_to_num().rad2deg().max()))
    upright = roma.rotmat_geodesic_distance(first.rotations, torch.eye(3).expand_as(first.rotations)).rad2deg()

    table = Table(title=f"{model.card.name}: {len(chairs)} chairs, {ROTATIONS} random rotations", show_header=False)
    table.add_row("classified as a chair", f"{first.names.count('chair')} of {len(chairs)}")
    table.add_row("predictions changed by rotations", f"{changed}")
    table.add_row("largest change of a score", f"{score:.0e}")
    table.add_row("predicted rotations follow, up to", f"{follow:.2f} degrees")
    table.add_row("predicted rotation of upright chairs, median", f"{float(upright.nanmedian()):.1f} degrees")
    Console(width=100).print(table)

    views = chairs[:SHOWN] @ roma.random_rotmat(SHOWN).mT
    answers = list(model.predict(views))
    pictures = zip(views, model.upright(views), answers, strict=True)
    pairs = [
        Pair(
            draw_shape(before.numpy(), answer.rotation, "", side=SIDE),
            draw_shape(after.numpy(), None, "", side=SIDE),
            f"{answer.label} {answer.confidence:.0%}",
        )
        for before, after, answer in pictures
    ]
    contact_sheet(pairs).save(PICTURE)
    print(f"Rotated chairs with their predicted frames, and rotated back: {PICTURE.resolve()}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
