"""Read images with an exported model: onnxruntime, numpy and Pillow, neither torch nor equicaps.

Run: equicaps export digits --to onnx && python examples/read_onnx.py digits.onnx IMAGE...
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


# --8<-- the program
def prepare(path: str, channels: int, frame: int, side: int) -> np.ndarray:
    """Floats in [0, 1]: padded with black to a square, scaled to the frame, padded to the network's side."""
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB" if channels == 3 else "L")
    pixels = np.asarray(image, dtype=np.float32).reshape(image.height, image.width, channels) / 255
    pixels = centred(pixels, max(image.size))
    planes = [Image.fromarray(plane).resize((frame, frame), Image.Resampling.BILINEAR) for plane in pixels.T]
    return centred(np.stack([np.asarray(plane).T for plane in planes], -1), side).transpose(2, 0, 1)


def centred(pixels: np.ndarray, side: int) -> np.ndarray:
    room = [(side - length) // 2 for length in pixels.shape[:2]]
    missing = [(before, side - length - before) for before, length in zip(room, pixels.shape[:2], strict=True)]
    return np.pad(pixels, (*missing, (0, 0)))


def main(model: str, *paths: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    notes = session.get_modelmeta().custom_metadata_map
    classes, zeros, frame = json.loads(notes["classes"]), np.array(json.loads(notes["zeros"])), int(notes["frame"])
    _, channels, side, _ = session.get_inputs()[0].shape
    images = np.stack([prepare(path, channels, frame, side) for path in paths])

    scores, _agreements, poses = session.run(["scores", "agreements", "poses"], {"images": images})
    best, rows = scores.argmax(-1), np.arange(len(images))
    odds = np.exp(scores - scores.max(-1, keepdims=True))
    x, y = poses[rows, best].T
    angles = 180 - (180 - np.degrees(np.arctan2(y, x)) + zeros[best]) % 360
    angles[np.hypot(x, y) < 0.54] = np.nan  # no pose
    for path, label, confidence, angle in zip(
        paths, best, (odds / odds.sum(-1, keepdims=True)).max(-1), angles, strict=True
    ):
        print(f"{path} {classes[label]} {confidence:.3f} {angle:.1f}")


# --8<-- end

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
