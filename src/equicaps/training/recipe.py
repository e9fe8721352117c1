"""The recipe of a training: what a resumed training, and every process of one, must have in common."""

import re
from collections.abc import Mapping
from typing import Any

from equicaps.data import Dataset, Shapes
from equicaps.training.config import TrainConfig
from equicaps.training.sampler import Augment


def recipe(config: TrainConfig, data: Dataset | Shapes, augmentation: Augment) -> dict[str, Any]:
    """The settings, data set and augmentation by name, in a form that JSON can hold."""
    return {**config.recipe(), "data": describe_data(data), "augmentation": describe_augmentation(augmentation)}


def describe_data(data: Dataset | Shapes) -> dict[str, Any]:
    """The name and the size of a data set, and how many of its images have a known angle, if any has."""
    known = int(data.known_angles.sum())
    return {"name": data.name, "images": len(data), **({"known_angles": known} if known else {})}


def describe_augmentation(augmentation: Augment) -> str:
    """The ``repr`` of an augmentation without memory addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(augmentation))


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings that differ, as ``before -> now``, for a message; empty if none does."""
    found = []
    for key in before:
        old, new = _parts(before[key]), _parts(now[key])
        changed = [name for name in old if old[name] != new.get(name)]
        if changed and old.keys() == new.keys():
            found += [f"{key}.{name}: {old[name]} -> {new[name]}" for name in changed]
        elif before[key] != now[key]:
            found.append(f"{key}: {before[key]} -> {now[key]}")
    return "; ".join(found)


def _parts(setting: Any) -> dict[str, Any]:
    """The entries of a mapping, or the arguments in the ``repr`` of a dataclass; nothing for anything else."""
    if isinstance(setting, Mapping):
        return dict(setting)
    if isinstance(setting, str) and (kind := re.fullmatch(r"(\w+)\((\w+=.*)\)", setting)):
        return {"kind": kind[1], **dict(re.findall(r"(\w+)=(\(.*?\)|'.*?'|[^,]+)", kind[2]))}
    return {}
