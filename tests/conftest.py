"""Shapes in signatures are checked in every test: the hook must be in place before equicaps is first imported."""

from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import settings

jaxtyping.install_import_hook("equicaps", "beartype.beartype")

torch.set_num_threads(1)
settings.register_profile("equicaps", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("equicaps")

SHAPES = ((), (4,), (2, 3))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=(torch.float32, torch.float64), ids=("float32", "float64"))
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture(params=SHAPES, ids=str)
def shape(request: pytest.FixtureRequest) -> tuple[int, ...]:
    return request.param


@pytest.fixture
def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """What rounding may do to a handful of operations on well-conditioned input."""
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """As a user runs it: our own messages instead of jaxtyping's, and nothing between the tracer and the code."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
