"""Classify images with an exported model, using onnxruntime, numpy and Pillow; neither torch nor equicaps is needed.

Run: equicaps export digits --to onnx && python examples/read_onnx.py digits.onnx IMAGE...
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


# --8<-- the program
def prepare(path: str, channels: int, frame: int, side: int, known: str) -> np.ndarray:
    """The image as the network takes it: padded to a square, resized to the frame if needed, padded to the side."""
    pixels = read(path)
    brightness = np.median(background(pixels))
    if (known == "dark" and brightness > 2 / 3) or (known == "bright" and brightness < 1 / 3):
        pixels = 1 - pixels
    pixels = centred(pixels, max(pixels.shape[:2]))
    if len(pixels) != frame:
        planes = [Image.fromarray(plane) for plane in pixels.transpose(2, 0, 1)]
        pixels = np.stack([plane.resize((frame, frame), Image.Resampling.BILINEAR) for plane in planes], -1)
    if channels == 1:
        pixels = pixels @ np.array([[0.299], [0.587], [0.114]], dtype=np.float32)
    return centred(pixels, side).transpose(2, 0, 1)


def read(path: str) -> np.ndarray:
    """Red, green and blue in [0, 1], rotated according to the EXIF data; transparent images on black or white."""
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I"):  # 16-bit grey
        return np.stack([np.asarray(image, dtype=np.float32) / 65535] * 3, -1)
    values = np.asarray(image.convert("RGBA"), dtype=np.float32) / 255
    colours, opacity = values[..., :3], values[..., 3:]
    dark = opacity.any() and np.average(colours.mean(-1), weights=opacity[..., 0]) < 0.4
    mixed = colours * opacity + np.float32(dark) * (1 - opacity)
    return np.rint(mixed * 255) / np.float32(255)


def background(pixels: np.ndarray) -> np.ndarray:
    """The outermost pixel nearest to the median of all of them, in every channel; of an even number, the lower one."""
    height, width, channels = pixels.shape
    inside = np.zeros((height, width), dtype=bool)
    inside[1:-1, 1:-1] = True
    border = pixels[~inside].reshape(-1, channels)
    median = np.sort(border, axis=0)[(len(border) - 1) // 2]
    away = np.abs(np.rint((border - median) * 255)).sum(1)  # of several that are as near, the smallest by value
    return np.array(min(map(tuple, border[away == away.min()]))) if away.min() else median


def centred(pixels: np.ndarray, side: int) -> np.ndarray:
    """Pad evenly with the background; to add an odd number of rows or columns, average neighbours first."""
    colour = background(pixels)
    pixels = pixels - colour
    for axis in (0, 1):
        if (side - pixels.shape[axis]) % 2:
            around = np.pad(pixels, [(1, 1) if each == axis else (0, 0) for each in range(3)])
            pixels = (np.delete(around, 0, axis) + np.delete(around, -1, axis)) / 2
    rows, columns = ((side - length) // 2 for length in pixels.shape[:2])
    return np.pad(pixels, ((rows, rows), (columns, columns), (0, 0))) + colour


def main(model: str, *paths: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    notes = session.get_modelmeta().custom_metadata_map
    classes, frame = json.loads(notes["classes"]), int(notes["frame"])
    zeros, periods = (np.array(json.loads(notes[name])) for name in ("zeros", "periods"))
    _, channels, side, _ = session.get_inputs()[0].shape
    images = np.stack([prepare(path, channels, frame, side, notes["background"]) for path in paths])

    scores, _agreements, poses = session.run(["scores", "agreements", "poses"], {"images": images})
    best, rows = scores.argmax(-1), np.arange(len(images))
    odds = np.exp(scores - scores.max(-1, keepdims=True))
    x, y = poses[rows, best].T
    angles = 180 - (180 - np.degrees(np.arctan2(y, x)) + zeros[best]) % 360
    angles[(np.hypot(x, y) < 0.54) | (periods[best] != 360)] = np.nan  # the pose is undefined
    for path, label, confidence, angle in zip(
        paths, best, (odds / odds.sum(-1, keepdims=True)).max(-1), angles, strict=True
    ):
        print(f"{path} {classes[label]} {confidence:.3f} {angle:.1f}")


# --8<-- end

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
