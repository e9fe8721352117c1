"""Model files that were damaged, and model files that somebody wrote on purpose, with a right checksum."""

from collections.abc import Generator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import torch

from attack.children import outcome
from attack.damage import damaged
from equicaps import load
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import FileError, UnansweredError

VALUES = (None, True, -1, 0, 3, 10**9, 10**30, 10**400, [10**400] * 10, -0.5, 1e308, float("nan"), float("inf"), "",
          "x" * 5000, "\x1b[2J",
          "../x", [], [[]], [1, 2], {}, {"a": {}}, {"preset": "paper"})  # fmt: skip


def damaged_files(random: Random, count: int, folder: Path, model: Path) -> Generator[str | None]:
    """Whatever is changed in the bytes is refused, by the name of the file."""
    original = model.read_bytes()
    for _ in range(count):
        content = damaged(random, original)
        yield outcome(
            lambda content=content: _refused(folder / "model.safetensors", content, original), folder / "report"
        )


def _refused(path: Path, content: bytes, original: bytes) -> str | None:
    path.write_bytes(content)
    try:
        load(path)
    except FileError as error:
        return None if "model.safetensors" in str(error) else f"{error} does not name the file"
    return None if content == original else "a damaged file was loaded"


def written_on_purpose(random: Random, count: int, folder: Path, model: Path) -> Generator[str | None]:
    """Other weights or another card under a right checksum: refused by name, or the answers are finite."""
    tensors, content = read_tensors(model, "model")
    for _ in range(count):
        weights, card = dict(tensors), deepcopy(content)
        for _ in range(random.randint(1, 2)):
            _change_weights(random, weights) if random.random() < 0.5 else _change_card(random, card)
        yield outcome(lambda w=weights, c=card: _answers(folder / "model.safetensors", w, c), folder / "report")


def _change_weights(random: Random, weights: dict[str, torch.Tensor]) -> None:
    name = random.choice(sorted(weights))
    old = weights[name]
    kind = random.choice(("value", "scale", "shape", "type", "beyond float32", "missing", "other name"))
    if kind == "value" and old.numel() and old.is_floating_point():
        changed = old.clone()
        changed.view(-1)[random.randrange(old.numel())] = random.choice((float("nan"), float("inf"), 3e38, -3e38))
        weights[name] = changed
    elif kind == "scale":
        weights[name] = old * random.choice((0, 1e-30, 1e30, -1))
    elif kind == "shape":
        weights[name] = old.flatten()[: random.randrange(old.numel() + 1)]
    elif kind == "type":
        weights[name] = old.to(random.choice((torch.float64, torch.float16, torch.int64, torch.uint8)))
    elif kind == "beyond float32":
        weights[name] = torch.full_like(old, 1e300, dtype=torch.float64)
    else:
        del weights[name]
        if kind == "other name":
            weights[f"{name}x"] = old


def _change_card(random: Random, card: dict[str, Any]) -> None:
    part: Any = card
    for _ in range(random.randint(0, 2)):
        inside = [value for value in part.values() if isinstance(value, dict) and value]
        part = random.choice(inside) if inside else part
    key = random.choice(list(part))
    if random.random() < 0.2:
        del part[key]
    else:
        part[key] = random.choice(VALUES)


def _answers(path: Path, weights: dict[str, torch.Tensor], card: dict[str, Any]) -> str | None:
    write_tensors(path, "model", weights, card)
    try:
        model = load(path)
        found = model.predict(torch.rand(2, model.format.channels, 28, 28))
    except (FileError, UnansweredError) as error:
        known = isinstance(error, UnansweredError) or "model.safetensors" in str(error)
        return None if known and len(str(error)) < 2000 else f"{error!s:.200} does not name the file, or is endless"
    if not all(tensor.isfinite().all() for tensor in model.network.state_dict().values()):
        return "a network with weights that are not finite"
    finite = found.confidence.isfinite().all() and found.output.scores.isfinite().all()
    return None if finite else "an answer that is not finite"
