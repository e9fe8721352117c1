"""The same numbers from the compiled and exported layer as from the eager one, at any batch size."""

import io
import shutil

import onnxruntime
import pytest
import torch

groups = pytest.mark.parametrize("group", ["SO2", "SO3"])


def subject(equicaps, group):
    """A layer, which makes votes and routes them, and a function from batch sizes to its inputs."""
    group = getattr(equicaps.groups, group)()
    layer = equicaps.nn.GroupCapsules(group, 5, 4)
    return layer.eval(), lambda batch: (group.random(batch, 5), torch.rand(batch, 5))


@groups
def test_compiles_into_one_graph(plain, group):
    """torch.compile(fullgraph=True): no graph break, forward and backward."""
    layer, inputs = subject(plain, group)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    poses, activations = inputs(3)
    poses.requires_grad_()
    for actual, expected in zip(compiled(poses, activations), layer(poses, activations), strict=True):
        torch.testing.assert_close(actual, expected)
    (compiled_gradient,) = torch.autograd.grad(compiled(poses, activations).poses.sum(), [poses])
    (gradient,) = torch.autograd.grad(layer(poses, activations).poses.sum(), [poses])
    torch.testing.assert_close(compiled_gradient, gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the default backend of torch.compile needs g++")
def test_compiles_with_the_default_backend(plain):
    layer, inputs = subject(plain, "SO3")
    arguments = inputs(3)
    with torch.no_grad():
        compiled = torch.compile(layer, fullgraph=True)(*arguments)
        torch.testing.assert_close(compiled.poses, layer(*arguments).poses, rtol=1e-4, atol=1e-5)


@groups
def test_exports_for_any_batch_size(plain, group):
    """torch.export with a symbolic batch axis, run at another size."""
    layer, inputs = subject(plain, group)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(layer, inputs(3), dynamic_shapes=({0: batch}, {0: batch}))
    more = inputs(7)
    for actual, expected in zip(program.module()(*more), layer(*more), strict=True):
        torch.testing.assert_close(actual, expected)


@groups
def test_onnxruntime_gives_the_same_numbers(plain, group):
    """The SO(3) mean has a form that converts; svd and eigh have none."""
    layer, inputs = subject(plain, group)
    any_size = {0: torch.export.Dim.DYNAMIC}
    program = torch.onnx.export(layer, inputs(3), dynamo=True, verbose=False, dynamic_shapes=(any_size, any_size))
    buffer = io.BytesIO()
    program.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    more = inputs(7)
    feed = {spec.name: tensor.numpy() for spec, tensor in zip(session.get_inputs(), more, strict=True)}
    for actual, expected in zip(session.run(None, feed), layer(*more), strict=True):
        torch.testing.assert_close(torch.from_numpy(actual), expected.detach(), rtol=1e-4, atol=1e-5)
