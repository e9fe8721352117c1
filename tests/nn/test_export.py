"""The same numbers from the compiled and exported layer as from the eager one, at any batch size."""

import io
import shutil

import onnxruntime
import pytest
import torch

groups = pytest.mark.parametrize("group", ["SO2", "SO3"])
kinds = pytest.mark.parametrize("kind", ["route", "layer"])


class Route(torch.nn.Module):
    """``route`` as a module, votes in."""

    def __init__(self, equicaps, group):
        super().__init__()
        self.route, self.group = equicaps.functional.route, group

    def forward(self, votes, activations):
        return self.route(self.group, votes, activations)


def subject(equicaps, kind, group):
    """A module and a function from batch sizes to its inputs."""
    group = getattr(equicaps.groups, group)()
    if kind == "layer":
        layer = equicaps.nn.GroupCapsules(group, 5, 4)
        return layer.eval(), lambda batch: (group.random(batch, 5), torch.rand(batch, 5))
    return Route(equicaps, group).eval(), lambda batch: (group.random(batch, 4, 5), torch.rand(batch, 5))


@kinds
@groups
def test_compiles_into_one_graph(plain, group, kind):
    """torch.compile(fullgraph=True): no graph break, forward and backward."""
    layer, inputs = subject(plain, kind, group)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    poses, activations = inputs(3)
    poses.requires_grad_()
    for actual, expected in zip(compiled(poses, activations), layer(poses, activations), strict=True):
        torch.testing.assert_close(actual, expected)
    (compiled_gradient,) = torch.autograd.grad(compiled(poses, activations).poses.sum(), [poses])
    (gradient,) = torch.autograd.grad(layer(poses, activations).poses.sum(), [poses])
    torch.testing.assert_close(compiled_gradient, gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the default backend of torch.compile needs g++")
@groups
def test_compiles_with_the_default_backend(plain, group):
    layer, inputs = subject(plain, "layer", group)
    arguments = inputs(3)
    with torch.no_grad():
        compiled = torch.compile(layer, fullgraph=True)(*arguments)
        torch.testing.assert_close(compiled.poses, layer(*arguments).poses, rtol=1e-4, atol=1e-5)


@kinds
@groups
def test_exports_for_any_batch_size(plain, group, kind):
    """torch.export with a symbolic batch axis, run at another size."""
    layer, inputs = subject(plain, kind, group)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(layer, inputs(3), dynamic_shapes=({0: batch}, {0: batch}))
    more = inputs(7)
    for actual, expected in zip(program.module()(*more), layer(*more), strict=True):
        torch.testing.assert_close(actual, expected)


@kinds
@groups
def test_onnxruntime_gives_the_same_numbers(plain, group, kind):
    """The SO(3) mean has a form that converts; svd and eigh have none."""
    layer, inputs = subject(plain, kind, group)
    any_size = {0: torch.export.Dim.DYNAMIC}
    program = torch.onnx.export(layer, inputs(3), dynamo=True, verbose=False, dynamic_shapes=(any_size, any_size))
    buffer = io.BytesIO()
    program.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    more = inputs(7)
    feed = {spec.name: tensor.numpy() for spec, tensor in zip(session.get_inputs(), more, strict=True)}
    for actual, expected in zip(session.run(None, feed), layer(*more), strict=True):
        torch.testing.assert_close(torch.from_numpy(actual), expected.detach(), rtol=1e-4, atol=1e-5)
