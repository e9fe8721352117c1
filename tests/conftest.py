"""Check the shapes in signatures in every test: the hook must be in place before equicaps is first imported."""

import importlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import jaxtyping
import pytest
import torch
from hypothesis import settings

_hook = jaxtyping.install_import_hook("equicaps", "beartype.beartype")

# A shell starts background jobs with Ctrl-C ignored, and children inherit that, so tests of Ctrl-C could not run.
signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
settings.register_profile("equicaps", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("equicaps")

from equicaps._cache import cache_folder  # noqa: E402 # after the hook

SHAPES = ((), (4,), (2, 3))
APPLICATION = {"attack", "cli", "docs", "reproduction", "serve", "test_benchmarks.py", "test_sklearn.py"}
"""Tests of what users run, without the checks of shapes, which cost up to a third of the time; the layers below are
checked in tests of their own."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    outermost = item.path.relative_to(Path(__file__).parent).parts[0]
    jaxtyping.config.update("jaxtyping_disable", outermost in APPLICATION)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache, but for the images of folders, of which the tests have many that are gone soon."""
    mine = cache_folder()
    (mine / "kernels").mkdir(mode=0o700, parents=True, exist_ok=True)
    cache = tmp_path_factory.mktemp("cache")
    for entry in mine.iterdir():
        if entry.name != "folders":
            (cache / entry.name).symlink_to(entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQUICAPS_CACHE", str(cache))
        yield


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
    """The tolerance for the rounding errors of a handful of operations on well-conditioned input."""
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Switch jaxtyping's checks off, so that errors have our own messages, as for a user."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def plain() -> Iterator[ModuleType]:
    """A second equicaps imported without jaxtyping's checks, as for a user, which tracers can follow."""
    checked = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "equicaps"}
    sys.meta_path.remove(_hook.hook)
    yield importlib.import_module("equicaps")
    for name in [name for name in sys.modules if name.split(".")[0] == "equicaps"]:
        del sys.modules[name]
    sys.modules.update(checked)
    sys.meta_path.insert(0, _hook.hook)
