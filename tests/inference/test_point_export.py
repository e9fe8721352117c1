"""An exported network for shapes gives the same answers, for any batch size, number of points and padding."""

import copy
import functools
import importlib.util
import json

import pytest
import torch
from small_shapes import SOLIDS, parts, point_model

from equicaps.errors import ExportError, MissingPackageError
from equicaps.inference import point_export


@pytest.mark.usefixtures("plain")
def test_onnx_and_torch_agree_and_the_comparison_can_fail(monkeypatch):
    """One test, because tracing takes many seconds; the file is not optimised here for the same reason."""
    import onnx

    from equicaps.data import solid_shapes  # the plain ones
    from equicaps.inference import PointCard, PointModel, export, point_export
    from equicaps.models import PointArchitecture

    network, content = parts()
    mine = PointArchitecture("points", 5).build(0)
    mine.load_state_dict(network.state_dict())
    model = PointModel(mine, PointCard.of("solids", content))
    program = point_export.to_torch_export(mine.eval())
    monkeypatch.setattr(point_export, "to_torch_export", lambda network: program)
    content_of = functools.partial(export.onnx_content, optimize=False)
    monkeypatch.setattr(point_export, "onnx_content", content_of)
    file, found = point_export.export_points(model, "onnx", solid_shapes(6))
    assert found.holds, found
    assert found.images == 6
    assert 0 < found.scores < 1e-5  # two programs, not one compared with itself
    made = onnx.load_from_string(file)
    assert [entry.name for entry in made.graph.input] == ["points", "weights"]
    assert [entry.name for entry in made.graph.output] == ["scores", "agreements", "poses"]
    notes = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(notes["classes"]) == list(SOLIDS.classes)
    assert notes["fewest_points"] == "257"
    assert torch.tensor(json.loads(notes["uprights"])).shape == (5, 9)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.network.body.classes.scalars.mul_(1.01)  # control: the program is not that of this network
    monkeypatch.setattr(point_export, "onnx_content", lambda *given: file)
    _, found = point_export.export_points(other, "onnx", solid_shapes(3))
    assert not found.holds
    assert found.scores > 1e-4


def test_clouds_for_the_comparison_differ_in_number_and_padding():
    batches = point_export.rotated_clouds(point_model(), SOLIDS)
    assert [tuple(batch.shape) for batch in batches] == [(1, 257, 4), (2, 557, 4), (15, 357, 4)]
    assert [batch[..., 3].sum().item() for batch in batches[:2]] == [257, 557 + 457]


def test_a_missing_package_is_noticed_before_the_network_is_traced(monkeypatch):
    """Tracing takes many seconds."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxruntime" else find(name))
    monkeypatch.setattr(point_export, "to_torch_export", lambda network: pytest.fail("traced"))
    with pytest.raises(MissingPackageError, match="ONNX needs onnxruntime"):
        point_export.export_points(point_model(), "onnx", SOLIDS)


def test_a_network_that_cannot_be_exported_is_explained(monkeypatch):
    def broken(*given, **options):
        raise RuntimeError("no\nand pages of reasons")

    monkeypatch.setattr(torch.export, "export", broken)
    with pytest.raises(ExportError, match=r"torch.export cannot export this network .*RuntimeError: no\)"):
        point_export.to_torch_export(parts()[0])
