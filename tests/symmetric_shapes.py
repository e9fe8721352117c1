"""Drawings of things that look the same after a part of a turn, and a network that was never trained on them."""

import math

import numpy as np
import torch
from PIL import Image, ImageDraw

from equicaps.images import rotate
from equicaps.models import GroupCapsNet

SHAPES = ("bar", "triangle", "square", "hexagon", "washer", "arrow")
ORDERS = (2, 3, 4, 6, 0, None)
MANY = 20


def polygon(corners):
    return [(math.cos(math.tau * k / corners), math.sin(math.tau * k / corners)) for k in range(corners)]


def drawn(shape, size, noise=0.0, seed=0):
    """A shape in an image of 32x32 pixels, drawn eight times as large and reduced."""
    image = Image.new("L", (256, 256))
    pen = ImageDraw.Draw(image)
    outlines = {
        "bar": [(-1, -0.35), (1, -0.35), (1, 0.35), (-1, 0.35)],
        "triangle": polygon(3), "square": polygon(4), "hexagon": polygon(6),
        "arrow": [(-1, -0.2), (0.2, -0.2), (0.2, -0.5), (1, 0), (0.2, 0.5), (0.2, 0.2), (-1, 0.2)],
    }  # fmt: skip
    if shape == "washer":
        for radius, shade in ((size, 255), (size // 2, 0)):
            pen.ellipse((128 - radius, 128 - radius, 127 + radius, 127 + radius), fill=shade)
    else:
        pen.polygon([(127.5 + size * x, 127.5 - size * y) for x, y in outlines[shape]], fill=255)
    pixels = np.asarray(image.resize((32, 32), Image.Resampling.BOX)) / 255
    pixels = pixels + np.random.default_rng(seed).normal(0, noise, pixels.shape)
    return torch.from_numpy(pixels.clip(0, 1).astype(np.float32))[None]


def shapes(noise=0.0):
    images = [drawn(name, 65 + k, noise, 100 * label + k) for label, name in enumerate(SHAPES) for k in range(MANY)]
    return torch.stack(images), torch.arange(len(SHAPES)).repeat_interleave(MANY)


def untrained() -> GroupCapsNet:
    """In eval mode, after its batch norm has seen the shapes at any angle."""
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset("steerable", num_classes=len(SHAPES))
    images, _ = shapes()
    with torch.no_grad():
        for _ in range(20):
            network.train()(rotate(images, 360 * torch.rand(len(images)), 32))
    return network.eval()
