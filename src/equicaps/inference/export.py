"""A trained network as a program without Python: ONNX or ``torch.export``, checked on the spot.

Inputs are ``images``, floats in [0, 1] of the network's size, any number of them; outputs are ``scores``,
``agreements`` and ``poses``. ONNX needs ``pip install 'equicaps[onnx]'``.
"""

import contextlib
import copy
import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from equicaps.data import Dataset
from equicaps.errors import ExportError, MissingPackageError
from equicaps.groups import SO2
from equicaps.images.rotation import rotate
from equicaps.inference.card import Card
from equicaps.inference.model import PoseModel
from equicaps.models import CapsOutput, GroupCapsNet

if TYPE_CHECKING:
    import onnxruntime

INPUT, OUTPUTS = "images", ("scores", "agreements", "poses")
ALLOWED = 1e-5
"""How far a program may be off the network; see :class:`Comparison`."""
ROUNDINGS = 3
"""How often the network's own rounding a pose may be off: its own, and that of a program that rounds twice as much."""
BATCHES = (1, 2, 7)
"""Batch sizes that are tried besides all images at once."""

Program = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""From images to scores, agreements and poses."""


@dataclass(frozen=True)
class Comparison:
    """The largest differences between a program and the network it was made from, both in float32.

    Both round, in different orders; scores of size 10 carry about 1e-5 of that, so scores are compared relative to the
    largest one. Poses of classes that the image does not show rest on little evidence and round more: they are
    reported, but the pose that is part of the answer is the one of the predicted class.

    Attributes:
        images: how many were compared.
        labels_changed: images whose most probable class differs.
        scores: relative to the largest score.
        agreements: absolute; they lie in [0, 1].
        poses: of the predicted class, where defined; absolute, of unit vectors.
        all_poses: of every class, where defined.
        precise: the program's scores (relative) and defined poses against the network computed in float64: the rounding
            of the program alone.
        rounding: the same as ``poses`` between the network itself in float32 and in float64. Poses that rest on little
            evidence round more, in any program.
    """

    images: int
    labels_changed: int
    scores: float
    agreements: float
    poses: float
    all_poses: float
    precise: tuple[float, float]
    rounding: float = 0.0

    @property
    def holds(self) -> bool:
        """No label changed, scores and agreements within :data:`ALLOWED`, poses within that or some roundings."""
        close = max(self.scores, self.agreements) <= ALLOWED and self.poses <= max(ALLOWED, ROUNDINGS * self.rounding)
        return self.labels_changed == 0 and close


class _ThreeOutputs(nn.Module):
    """Without the reconstruction, which may be None."""

    def __init__(self, network: GroupCapsNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output: CapsOutput = self.network(images)
        return output.scores, output.activations, output.poses


def export_model(model: PoseModel, to: Literal["onnx", "torch"], data: Dataset) -> tuple[bytes, Comparison]:
    """The content of an ``.onnx`` or ``.pt2`` file, and how it compares with the network on rotated images.

    Args:
        model: to export.
        to: the format.
        data: images to compare on.
    """
    network = model.network
    if to == "onnx":
        content = to_onnx(network, notes_of(model.card))
        program = run_onnx(content)
    else:
        exported = to_torch_export(network)
        content, program = exported_bytes(exported), run_exported(exported)
    return content, compare(network, program, rotated_images(model, data))


def rotated_images(model: PoseModel, data: Dataset) -> Float[Tensor, "n channels size size"]:
    """Images in the model's format, rotated by seeded angles."""
    ready, generator = model.prepare(data.images), torch.Generator().manual_seed(0)
    return rotate(ready, 360 * torch.rand(len(ready), generator=generator))


def to_torch_export(network: GroupCapsNet) -> ExportedProgram:
    """A program for ``torch.export.save``, for any batch size.

    Raises:
        ExportError: if torch cannot export this network; the reason is its cause.
    """
    config, side = network.body.config, network.image_size
    parameter = next(network.parameters())
    example = torch.zeros(2, config.in_channels, side, side, dtype=parameter.dtype, device=parameter.device)
    with _explained("torch.export"), _quiet(), torch.no_grad():
        return torch.export.export(
            _ThreeOutputs(network).eval(), (example,), dynamic_shapes=({0: Dim("batch", min=1)},)
        )


def to_onnx(network: GroupCapsNet, notes: dict[str, str] | None = None) -> bytes:
    """An ONNX file for any batch size.

    Args:
        network: on the CPU.
        notes: texts to store in the file, such as the classes.

    Raises:
        ExportError: if torch cannot export this network; the reason is its cause.
    """
    _require("onnx", "onnxscript")
    import onnx

    program = to_torch_export(network)
    with _explained("torch.onnx"), _quiet():
        made = torch.onnx.export(
            program, dynamo=True, verbose=False, input_names=[INPUT], output_names=list(OUTPUTS)
        )  # fmt: skip
    assert made is not None
    model = made.model_proto
    for name, value in zip((INPUT, *OUTPUTS), (*model.graph.input, *model.graph.output), strict=True):
        if value.name != name:  # pragma: no cover - guards against another exporter
            raise RuntimeError(f"the exporter named {name!r} {value.name!r}.")
    onnx.helper.set_model_props(model, notes or {})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def notes_of(card: Card) -> dict[str, str]:
    """What a reader of an ONNX file needs to know, as texts."""
    angle = "degrees(atan2(pose_y, pose_x)) - zeros[class]"
    return {"classes": json.dumps(card.classes), "zeros": json.dumps(card.zeros), "frame": str(card.frame),
            "angle": angle, "convention": card.convention}  # fmt: skip


def open_session(model: bytes, *, threads: int = 1) -> "onnxruntime.InferenceSession":
    """onnxruntime on the CPU."""
    _require("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnx(model: bytes) -> Program:
    """The ONNX file as a function of tensors."""
    session = open_session(model)

    def run(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        answers = session.run(list(OUTPUTS), {INPUT: images.numpy()})
        scores, agreements, poses = (torch.from_numpy(np.asarray(answer)) for answer in answers)
        return scores, agreements, poses

    return run


def run_exported(program: ExportedProgram) -> Program:
    """The program, written and read again, as a function of tensors."""
    file = io.BytesIO(exported_bytes(program))
    with _quiet():
        module = torch.export.load(file).module()
    return torch.no_grad()(module)


def exported_bytes(program: ExportedProgram) -> bytes:
    """The content of a ``.pt2`` file."""
    file = io.BytesIO()
    with _quiet():
        torch.export.save(program, file)
    return file.getvalue()


@torch.no_grad()
def compare(
    network: GroupCapsNet, program: Program, images: Float[Tensor, "n channels height width"], *, batch: int = 250
) -> Comparison:
    """How far the program's answers are from the network's, at several batch sizes."""
    sizes = [size for size in BATCHES if size <= len(images)]
    parts = [*(images[:size] for size in sizes), *images.split(batch)]
    precise = copy.deepcopy(network).double().eval()
    changed, scores, agreements, answered, everywhere, largest = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    exact, rounding = [0.0, 0.0], 0.0
    for number, part in enumerate(parts):
        theirs, ours = program(part), network(part)
        labels = ours.scores.argmax(-1)
        changed += int((theirs[0].argmax(-1) != labels).sum()) if number >= len(sizes) else 0
        largest = max(largest, ours.scores.abs().max().item())
        scores = max(scores, _apart(theirs[0], ours.scores))
        agreements = max(agreements, _apart(theirs[1], ours.activations))
        difference = _pose_difference(theirs[2], ours.poses)
        everywhere = max(everywhere, difference.max().item())
        answered = max(answered, difference[torch.arange(len(part)), labels].max().item())
        true = precise(part.double())
        exact[0] = max(exact[0], _apart(theirs[0].double(), true.scores))
        exact[1] = max(exact[1], _pose_difference(theirs[2].double(), true.poses).max().item())
        own = _pose_difference(ours.poses.double(), true.poses)
        rounding = max(rounding, own[torch.arange(len(part)), labels].max().item())
    size = largest or 1.0
    return Comparison(
        len(images), changed, scores / size, agreements, answered, everywhere, (exact[0] / size, exact[1]), rounding
    )  # fmt: skip


def _apart(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def _pose_difference(actual: Tensor, expected: Tensor) -> Tensor:
    defined = SO2().presence(expected) > 0.5
    return (actual - expected).abs().amax(-1) * defined


def _require(*packages: str) -> None:
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise MissingPackageError(f"ONNX needs {', '.join(missing)}: pip install 'equicaps[onnx]'.")


@contextlib.contextmanager
def _explained(exporter: str) -> Iterator[None]:
    """Exporters raise whatever the operator at fault does, over pages: the first line of it."""
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
    """Without the exporters' remarks about packages that are not needed and about their own future."""
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
