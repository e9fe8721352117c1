"""Errors have one root, and the errors of bad arguments say what was expected, what came and what to do."""

import builtins

import pytest
import torch
from oracles import ALL_GROUPS

from equicaps import errors
from equicaps.functional import route
from equicaps.groups import GL, SE2, SO2, SO3, Product, Scale, Translation, karcher_mean
from equicaps.nn import GroupCapsules

pytestmark = pytest.mark.usefixtures("without_shape_checks")

ERRORS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
BUILT_IN = {value for value in vars(builtins).values() if isinstance(value, type)} - {object, BaseException, Exception}

votes, activations = SO2().random(3, 5), torch.ones(5)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_has_one_root_and_is_a_built_in_error(error):
    """``except EquicapsError`` catches it, and so does the built-in that people already catch."""
    assert issubclass(error, errors.EquicapsError)
    assert error is errors.EquicapsError or BUILT_IN & set(error.__mro__)
    assert "what to do" in str(error("what to do"))


def test_that_list_has_all_errors():
    names = {"DamagedFileError", "DamagedFilesError", "EquicapsError", "ExportError", "FetchError", "FileError"}
    names |= {"LawViolationError", "MissingPackageError", "NotFoundError", "TrainingError", "UnansweredError"}
    names |= {"UsageError", "WorkersError"}
    assert {error.__name__ for error in ERRORS} == names


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
@pytest.mark.parametrize(
    "method", ["compose", "inverse", "act", "mean", "distance", "exp", "log", "contains", "presence"]
)
def test_a_wrong_trailing_size_is_named(group, method):
    """The message states the expected size and the shape that came."""
    wrong = torch.ones(4, 99)
    arguments = {
        "mean": (wrong, torch.ones(4)),
        "compose": (wrong, group.random(4)),
        "distance": (group.random(4), wrong),
        "act": (group.random(4), wrong),
    }.get(method, (wrong,))
    with pytest.raises(ValueError, match=r"must have shape \(\*batch, .*\), .*but has shape \(4, 99\)"):
        getattr(group, method)(*arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: SO2().mean(votes, torch.ones(3)),
            ValueError,
            r"`weights` must have shape \(\*batch, 5\), one weight for",
        ),
        (lambda: SO2().mean(votes, torch.ones(5, 3)), ValueError, r"`weights` must .* has shape \(5, 3\)"),
        (lambda: SO2().mean(votes[:, :0], torch.ones(0)), ValueError, "mean of zero elements"),
        (lambda: SO2().mean(weights=torch.ones(3), elements=votes), ValueError, "`weights` must have shape"),
        (lambda: SO2().mean(votes, torch.ones(2, 5)), ValueError, "batch axes must broadcast"),
        (lambda: SO2().compose(votes, SO2().random(4, 5)), ValueError, r"broadcast .* `g` \(3, 5\), `h` \(4, 5\)"),
        (lambda: SO2().compose(votes, votes.double()), TypeError, r"one dtype.*`g` torch.float32, `h` torch.float64"),
        (lambda: SO2().compose(votes, votes.to("meta")), ValueError, "one device.*`g` on cpu, `h` on meta"),
        (lambda: SO2().inverse(torch.ones(2, dtype=torch.int64)), TypeError, r"float32 or float64.*int64.*\.float\(\)"),
        (lambda: SO2().inverse(votes.half()), TypeError, "float32 or float64, but has dtype torch.float16"),
        (lambda: SO2().inverse([1.0, 0.0]), TypeError, "must be a torch.Tensor, but is list"),
        (lambda: karcher_mean(SO3(), votes, activations), ValueError, r"`elements` must have shape \(\*batch, n, 9\)"),
        (
            lambda: karcher_mean(SO2(), votes, torch.ones(3, 5), iterations=0),
            ValueError,
            "`iterations` must be at least 1",
        ),
        (lambda: route(SO3(), votes, activations), ValueError, r"`votes` must have shape \(\*batch, m, n, 9\)"),
        (lambda: route(SO2(), votes, torch.ones(3)), ValueError, r"`activations` must have shape \(5,\)"),
        (lambda: route(SO2(), votes[:0], activations), ValueError, "at least one output and one input capsule.*m=0"),
        (lambda: route(SO2(), votes[:, :0], activations[:0]), ValueError, "at least one .* n=0"),
        (
            lambda: route(SO2(), votes, activations.double()),
            TypeError,
            "`votes` torch.float32, `activations` torch.float64",
        ),
        (lambda: route(SO2(), votes, activations, iterations=-1), ValueError, r"`iterations` must be 0 \(no routing\)"),
        (
            lambda: route(SO2(), votes, activations, sigma="sigmoid"),
            TypeError,
            r"`sigma` must be a Sigma such as Sigmoid\(\)",
        ),
        (lambda: route(SO2(), votes, activations, agreement="max"), ValueError, "`agreement` must be one of"),
        (lambda: GroupCapsules(SO2(), 0, 3), ValueError, "`in_capsules` must be at least 1, but is 0"),
        (lambda: GroupCapsules(SO2(), 3, 2.5), TypeError, "`out_capsules` must be a whole number, but is 2.5"),
        (lambda: GroupCapsules(SO2(), 3, True), TypeError, "must be a whole number"),
        (lambda: GroupCapsules(SO2, 3, 2), TypeError, r"`group` must be a Group such as SO2\(\)"),
        (lambda: GroupCapsules(SO2(), 3, 2, iterations=1.5), ValueError, "`iterations` must be 0"),
        (
            lambda: GroupCapsules(SO2(), 3, 2)(SO2().random(4), torch.ones(4)),
            ValueError,
            r"\(\*batch, 3, 2\) for 3 input",
        ),
        (
            lambda: GroupCapsules(SO2(), 3, 2)(SO2().random(3), torch.ones(2)),
            ValueError,
            r"`activations` must .* \(3,\)",
        ),
        (lambda: GroupCapsules(SO2(), 3, 2).double()(SO2().random(3), torch.ones(3)), TypeError, "layer's parameters"),
        (lambda: Translation(0), ValueError, "`n` must be at least 1, but is 0"),
        (lambda: GL("2"), TypeError, "`n` must be a whole number, but is '2'"),
        (lambda: Scale(-1), ValueError, "`n` must be at least 1"),
        (
            lambda: SE2(translation_weight=0.0),
            ValueError,
            "`translation_weight` must be positive and finite, but is 0.0",
        ),
        (lambda: SE2("1"), TypeError, "`translation_weight` must be a number, but is '1'"),
        (lambda: Product(SO2(), SO3(), weights=(1.0, -1.0)), ValueError, "`weights` must be positive"),
        (lambda: GL(9), ValueError, "`n` must be at most 8"),
        (lambda: route(SO2, votes, activations), TypeError, r"`group` must be a Group such as SO2\(\)"),
        (lambda: karcher_mean(SO2, votes, activations), TypeError, "`group` must be a Group"),
        (lambda: route(SO2(), votes, activations, iterations=True), ValueError, "`iterations` must be 0"),
        (lambda: SO2().mean(votes), TypeError, "missing 1 required positional argument"),
        (lambda: Product(SO2()), ValueError, "two or more groups"),
        (lambda: Product(SO2(), SO3), ValueError, "two or more groups"),
        (lambda: Product(SO2(), SO3(), weights=(1.0,)), ValueError, "2 numbers, one for each factor, but there are 1"),
    ],
)
def test_bad_input_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()
