"""Export a trained network as a program that runs without Python, ONNX or ``torch.export``, and check it on the spot.

The input is ``images``, any number of images in [0, 1] of the network's size; the outputs are ``scores``,
``agreements`` and ``poses``. ONNX needs ``pip install 'equicaps[onnx]'``.
"""

import contextlib
import copy
import importlib.util
import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from equicaps.data import Dataset
from equicaps.errors import ExportError, MissingPackageError
from equicaps.groups import SO2
from equicaps.groups.base import Group
from equicaps.images.rotation import rotate
from equicaps.inference.card import Card
from equicaps.inference.model import PoseModel, eval_mode
from equicaps.models import CapsOutput, GroupCapsNet

if TYPE_CHECKING:
    import onnxruntime

INPUT, OUTPUTS = "images", ("scores", "agreements", "poses")
ALLOWED = 1e-5
"""The difference that is always allowed between a program and its network; see :class:`Comparison`."""
ROUNDINGS = 3
"""Outputs may differ by this multiple of the network's own rounding: once its own, twice that of the program."""
BATCHES = (1, 2, 7)
"""The batch sizes that are tested besides large batches of all images."""

Program = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""A function from images to scores, agreements and poses."""


@dataclass(frozen=True)
class Comparison:
    """The largest differences between a program and the network it was made from, both in float32.

    Both round, in different orders. Scores of size 10 carry rounding errors of about 1e-5, so scores are compared
    relative to the largest one. Poses of classes that the image does not show rest on little evidence and round more:
    they are reported, but only the pose of the predicted class counts, because only that one is part of the answer.

    Attributes:
        images: the number of images.
        labels_changed: the number of images whose most probable class differs.
        scores: the difference of the scores, relative to the largest score.
        agreements: the difference of the agreements, which lie in [0, 1].
        poses: the difference of the predicted class's pose, a unit vector, where it is defined.
        all_poses: the same for the poses of all classes.
        precise: the differences of the program's scores (relative) and defined poses from the network computed in
            float64: the rounding of the program alone.
        rounding: the differences of ``scores``, ``agreements`` and ``poses`` between the network itself in float32
            and in float64. Poses that rest on little evidence round more, in any program, and so does all that a steep
            σ makes of them in the paper's network.
    """

    images: int
    labels_changed: int
    scores: float
    agreements: float
    poses: float
    all_poses: float
    precise: tuple[float, float]
    rounding: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def holds(self) -> bool:
        """Whether no label changed, and scores, agreements and poses are finite and agree up to rounding."""
        found = (self.scores, self.agreements, self.poses)
        finite = all(map(math.isfinite, (*found, *self.rounding)))
        close = [value <= max(ALLOWED, ROUNDINGS * own) for value, own in zip(found, self.rounding, strict=True)]
        return self.labels_changed == 0 and finite and all(close)


class _ThreeOutputs(nn.Module):
    """The network without its reconstruction, which may be None."""

    def __init__(self, network: GroupCapsNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = self.network.classify(images)
        return output.scores, output.activations, output.poses


def export_model(model: PoseModel, to: Literal["onnx", "torch"], data: Dataset) -> tuple[bytes, Comparison]:
    """Export a model in float32 and compare the program with the network on rotated images.

    Args:
        model: the model to export; it stays unchanged.
        to: the format.
        data: the images to compare on.

    Returns:
        The content of an ``.onnx`` or ``.pt2`` file, and the comparison.
    """
    check_packages(to)
    network = copy.deepcopy(model.network).cpu().float().eval()
    if to == "onnx":
        content = to_onnx(network, notes_of(model.card))
        program = run_onnx(content)
    else:
        made = to_torch_export(network)
        content, program = exported_bytes(made), run_exported(made)
    return content, compare(network, program, rotated_images(model, data))


def check_packages(to: Literal["onnx", "torch"]) -> None:
    """Raise, before anything that takes long, if a package is missing that an export to this format needs."""
    if to == "onnx":
        _require("onnx", "onnxscript", "onnxruntime")  # the last one runs the program


def rotated_images(model: PoseModel, data: Dataset) -> Float[Tensor, "n channels size size"]:
    """Images in the model's format, rotated by seeded random angles."""
    ready, generator = model.prepare(data.images), torch.Generator().manual_seed(0)
    return rotate(ready, 360 * torch.rand(len(ready), generator=generator))


def to_torch_export(network: GroupCapsNet) -> ExportedProgram:
    """Export a network as a program for ``torch.export.save``, for any batch size.

    Raises:
        ExportError: if torch cannot export this network; the exporter's error is its cause.
    """
    config, side = network.body.config, network.image_size
    parameter = next(network.parameters())
    example = torch.zeros(2, config.in_channels, side, side, dtype=parameter.dtype, device=parameter.device)
    with eval_mode(network):
        return exported(_ThreeOutputs(network).eval(), (example,), ({0: Dim("batch", min=1)},))


def exported(module: nn.Module, examples: tuple[Tensor, ...], dynamic: Any) -> ExportedProgram:
    """Export a module with three outputs, see :func:`to_torch_export`; ``dynamic`` says which axes may vary."""
    with _explained("torch.export"), _quiet(), torch.no_grad():
        return torch.export.export(module, examples, dynamic_shapes=dynamic)


def to_onnx(network: GroupCapsNet, notes: dict[str, str] | None = None) -> bytes:
    """Export a network as the content of an ONNX file, for any batch size.

    Args:
        network: a network on the CPU.
        notes: texts to store in the file, such as the names of the classes.

    Raises:
        ExportError: if torch cannot export this network; the exporter's error is its cause.
    """
    _require("onnx", "onnxscript")
    return onnx_content(to_torch_export(network), (INPUT,), notes)


def onnx_content(
    program: ExportedProgram, inputs: tuple[str, ...], notes: dict[str, str] | None, *, optimize: bool = True
) -> bytes:
    """An exported program as the content of an ONNX file, see :func:`to_onnx`; its optimisation may take long."""
    _require("onnx", "onnxscript")
    import onnx

    with _explained("torch.onnx"), _quiet():
        made = torch.onnx.export(
            program, dynamo=True, verbose=False, optimize=optimize, input_names=list(inputs),
            output_names=list(OUTPUTS)
        )  # fmt: skip
    assert made is not None
    model = made.model_proto
    for name, value in zip((*inputs, *OUTPUTS), (*model.graph.input, *model.graph.output), strict=True):
        if value.name != name:  # pragma: no cover - guards against other versions of the exporter
            raise ExportError(f"torch.onnx must name a value {name!r}, but named it {value.name!r}.")
    onnx.helper.set_model_props(model, notes or {})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def notes_of(card: Card) -> dict[str, str]:
    """What a user of an ONNX file needs to know, as strings."""
    angle = "degrees(atan2(pose_y, pose_x)) - zeros[class], if periods[class] is 360; otherwise unknown"
    periods = [360.0] * len(card.classes) if card.symmetries is None else card.symmetries.periods.tolist()
    return {"classes": json.dumps(card.classes), "zeros": json.dumps(card.zeros), "periods": json.dumps(periods),
            "frame": str(card.frame), "background": card.background or "any", "angle": angle,
            "convention": card.convention}  # fmt: skip


def open_session(model: bytes, *, threads: int = 1) -> "onnxruntime.InferenceSession":
    """Open an ONNX model in onnxruntime on the CPU."""
    _require("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnx(model: bytes, inputs: tuple[str, ...] = (INPUT,)) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Wrap the content of an ONNX file as a function of tensors, one for each input."""
    session = open_session(model)

    def run(*given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        answers = session.run(
            list(OUTPUTS), {name: tensor.contiguous().numpy() for name, tensor in zip(inputs, given, strict=True)}
        )
        scores, agreements, poses = (torch.from_numpy(np.asarray(answer)) for answer in answers)
        return scores, agreements, poses

    return run


def run_exported(program: ExportedProgram) -> Program:
    """Wrap a program, after writing and reading it, as a function of tensors."""
    file = io.BytesIO(exported_bytes(program))
    with _quiet():
        module = torch.export.load(file).module()
    return torch.no_grad()(module)


def exported_bytes(program: ExportedProgram) -> bytes:
    """The content of the program's ``.pt2`` file."""
    file = io.BytesIO()
    with _quiet():
        torch.export.save(program, file)
    return file.getvalue()


@torch.no_grad()
def compare(
    network: GroupCapsNet, program: Program, images: Float[Tensor, "n channels height width"], *, batch: int = 250
) -> Comparison:
    """Compare a program's answers with the network's, at several batch sizes."""
    with eval_mode(network):
        precise = copy.deepcopy(network).double()
        sizes = [size for size in BATCHES if size <= len(images)]
        parts = [*(images[:size] for size in sizes), *images.split(batch)]
        return compare_parts(network.classify, precise.classify, program, parts, repeated=len(sizes), group=SO2())


def compare_parts(
    network: Callable[[Tensor], CapsOutput],
    precise: Callable[[Tensor], CapsOutput],
    program: Program,
    parts: Sequence[Tensor],
    *,
    repeated: int,
    group: Group,
) -> Comparison:
    """Compare a program's answers with those of a network, in float32 and in float64.

    Args:
        network: in float32.
        precise: the same in float64.
        program: what was made of it.
        parts: batches of inputs, of any size.
        repeated: how many of the first parts repeat inputs of later ones.
        group: that of the poses.
    """
    changed, differences = 0, []
    with torch.no_grad():
        for number, part in enumerate(parts):
            theirs, ours, exact = program(part), network(part), precise(part.double())
            labels = ours.scores.argmax(-1)
            if number >= repeated:
                changed += int((theirs[0].argmax(-1) != labels).sum())
            poses = _pose_difference(group, theirs[2], ours.poses)
            own = _pose_difference(group, ours.poses.double(), exact.poses)
            of_labels = (torch.arange(len(part)), labels)
            parts_differ = (
                ours.scores.abs(),
                (theirs[0] - ours.scores).abs(),
                (theirs[1] - ours.activations).abs(),
                poses[of_labels],
                poses,
                (theirs[0].double() - exact.scores).abs(),
                _pose_difference(group, theirs[2].double(), exact.poses),
                (ours.scores.double() - exact.scores).abs(),
                (ours.activations.double() - exact.activations).abs(),
                own[of_labels],
            )
            differences.append(torch.stack([values.max().double() for values in parts_differ]))
    worst = torch.stack(differences).amax(0).tolist()  # amax keeps NaN, which must not pass for 0
    largest, scores, agreements, answered, everywhere, exact_scores, exact_poses, *own_rounding = worst
    size = largest or 1.0
    precision = (exact_scores / size, exact_poses)
    rounding = (own_rounding[0] / size, own_rounding[1], own_rounding[2])
    return Comparison(
        sum(map(len, parts[repeated:])), changed, scores / size, agreements, answered, everywhere, precision, rounding
    )


def _pose_difference(group: Group, actual: Tensor, expected: Tensor) -> Tensor:
    """The largest difference of each pose's coordinates, 0 where the expected pose is undefined."""
    defined = group.presence(expected) > 0.5
    return (actual - expected).abs().amax(-1) * defined


def _require(*packages: str) -> None:
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise MissingPackageError(f"ONNX needs {', '.join(missing)}: pip install 'equicaps[onnx]'.")


@contextlib.contextmanager
def _explained(exporter: str) -> Iterator[None]:
    """Turn an exporter's error, of any type and pages long, into one line."""
    try:
        yield
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        reason = f"{type(error).__name__}: {first}".rstrip(".: ")
        raise ExportError(
            f"{exporter} cannot export this network with torch {torch.__version__} ({reason})."
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters, which comment on packages that are not needed and on their own future."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
