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


def test_exports_for_any_batch_size(plain):
    net = network(plain)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net, (torch.rand(3, 1, 8, 8),), dynamic_shapes=({0: batch},))
    more = torch.rand(7, 1, 8, 8)
    for actual, expected in zip(program.module()(more), net(more), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_onnxruntime_gives_the_same_numbers(plain):
    net = network(plain)
    any_size = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.onnx.export(net, (torch.rand(3, 1, 8, 8),), dynamo=True, verbose=False, dynamic_shapes=any_size)
    buffer = io.BytesIO()
    program.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    more = torch.rand(5, 1, 8, 8)
    outputs = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    for actual, expected in zip(outputs, net(more), strict=True):
        torch.testing.assert_close(torch.from_numpy(actual), expected.detach(), rtol=1e-3, atol=1e-4)


def test_compiles_into_one_graph(plain):
    """torch.compile(fullgraph=True) takes the plain path, forward and backward."""
    net = network(plain, "Sigmoid", "SplineKernel")
    images = torch.rand(3, 1, 8, 8)
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    for actual, expected in zip(compiled(images), net(images), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    compiled(images)[2].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
