"""Image layers export with a symbolic batch size, and the program gives the numbers of the eager layer."""

import io

import onnxruntime
import torch


def network(equicaps, sigma="Linear", kernel="HarmonicKernel"):
    """Poses, two capsule layers and two convolutions. Sigmoid and splines: tests/models/test_network_export.py."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            group, nn = equicaps.groups.SO2(), equicaps.nn
            choice = getattr(equicaps.functional, sigma)()
            self.poses = nn.ImagePoses("gaussian")
            self.capsules = torch.nn.ModuleList(
                nn.SpatialCapsules2d(group, n, m, sigma=choice) for n, m in ((1, 4), (4, 3))
            )
            psi = getattr(nn, kernel)()
            self.convolutions = torch.nn.ModuleList(nn.PoseConv2d(n, m, 2, 2, kernel=psi) for n, m in ((1, 4), (4, 3)))

        def forward(self, images):
            capsules, features = self.poses(images), images
            for capsule_layer, convolution in zip(self.capsules, self.convolutions, strict=True):
                capsules = capsule_layer(capsules)
                features = torch.relu(convolution(features, capsules.poses)) * capsules.activations
            return capsules.poses, capsules.activations, features

    return Network().eval()


def test_torch_and_onnx_programs_give_the_same_numbers_for_any_batch_size(plain):
    net = network(plain)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net, (torch.rand(3, 1, 8, 8),), dynamic_shapes=({0: batch},))
    more = torch.rand(7, 1, 8, 8)
    expected = [output.detach() for output in net(more)]
    for actual, exact in zip(program.module()(more), expected, strict=True):
        torch.testing.assert_close(actual, exact, rtol=1e-4, atol=1e-5)

    buffer = io.BytesIO()
    torch.onnx.export(program, dynamo=True, verbose=False).save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    for actual, exact in zip(outputs, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(actual), exact, rtol=1e-3, atol=1e-4)


def test_compiles_into_one_graph(plain):
    """torch.compile(fullgraph=True) takes the plain path, forward and backward."""
    net = network(plain, "Sigmoid", "SplineKernel")
    images = torch.rand(3, 1, 8, 8)
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    for actual, expected in zip(compiled(images), net(images), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    compiled(images)[2].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
