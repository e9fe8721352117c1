"""Whole networks export for any batch size, and the programs give the same numbers as the eager network.

``steerable`` as ONNX is tested in ``tests/inference/test_exported_programs.py``.
"""

import io

import onnxruntime
import pytest
import torch

from equicaps.models import PRESETS

VARIANTS = ("paper_gaussian", "paper_pooled", "paper_iterated")


def images(n):
    """Smooth blobs, because on pixel noise the poses would be ill-conditioned."""
    return torch.nn.functional.interpolate(torch.rand(n, 1, 8, 8), 32, mode="bilinear")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("name", "mirror"),
    [*((name, "distinguish") for name in PRESETS if name not in VARIANTS), ("steerable", "ignore")],
)
def test_every_preset_is_a_torch_program_for_any_batch_size(name, mirror):
    """The paper's network with the options of all its variants; without them it is an ONNX program, below."""
    from equicaps.inference.export import to_torch_export  # the plain ones
    from equicaps.models import PRESETS, GroupCapsNet, PaperConfig, PaperNet

    make, options = PRESETS[name]
    if name == "paper":
        options = {key: value for variant in VARIANTS for key, value in PRESETS[variant][1].items()}
    thin = make is PaperConfig  # fewer layers of the same operators, traced much faster
    whole = None if thin else GroupCapsNet.from_preset(name, mirror=mirror)
    network = whole or GroupCapsNet(PaperNet(make(widths=(4,), **options)))
    network.train()(images(8))
    program = to_torch_export(network.eval()).module()
    for count in (1, 5):
        some = images(count)
        for actual, exact in zip(program(some), network(some), strict=False):  # without the reconstruction
            torch.testing.assert_close(actual, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("plain")
def test_a_failed_export_is_explained_in_one_line():
    from equicaps.errors import ExportError
    from equicaps.inference.export import to_torch_export
    from equicaps.models import GroupCapsNet

    network = GroupCapsNet.from_preset("steerable_cnn").eval()
    network.body.register_forward_pre_hook(lambda body, images: int("no\nnumber"))
    with pytest.raises(ExportError, match=r"^torch\.export cannot export this network with torch \S+ \(.*\)\.$"):
        to_torch_export(network)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["steerable_capsules", "paper"])
def test_torch_and_onnx_programs_give_the_same_numbers_for_any_batch_size(name):
    from equicaps.models import GroupCapsNet, PaperConfig, PaperNet  # the plain ones

    thin = PaperNet(PaperConfig(widths=(4,)))  # two layers: the operators are the same, and traced much faster
    network = GroupCapsNet(thin) if name == "paper" else GroupCapsNet.from_preset(name)
    network.train()(images(8))
    network.eval()
    any_size = ({0: torch.export.Dim("batch", min=2)},)
    program = torch.export.export(network, (images(3),), dynamic_shapes=any_size)
    more = images(5)
    expected = [output.detach() for output in network(more)[:3]]
    for actual, exact in zip(program.module()(more)[:3], expected, strict=True):
        torch.testing.assert_close(actual, exact, rtol=1e-4, atol=1e-4)

    buffer = io.BytesIO()
    torch.onnx.export(program, dynamo=True, verbose=False).save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    for actual, exact in zip(outputs[:3], expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(actual), exact, rtol=1e-3, atol=1e-3)
