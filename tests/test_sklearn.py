"""The classifier for scikit-learn: its checks, the guarantee under quarter turns, and what users do with it."""

import functools
import importlib
import pickle
import signal
import sys
import tempfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import equicaps.sklearn
from equicaps.errors import MissingPackageError
from equicaps.images import Augmentation
from equicaps.images.preparation import ImageFormat, fit, read
from equicaps.sklearn import RotationInvariantClassifier
from equicaps.training import Budget, TrainConfig

TABLE, NUMBERS = load_digits(n_class=3, return_X_y=True)
IMAGES = TABLE.reshape(-1, 8, 8)
LABELS = np.array(["nought", "one", "two"])[NUMBERS]
NOT_EXACT = {
    "check_methods_subset_invariance": "in a batch of another size, float32 sums are in another order; it wants 1e-7",
}
REPEATED = {
    "check_classifiers_train": "its variants: check_readonly_memmap_input and check_estimators_dtypes do the same",
    "check_estimators_pickle": "its variant, too",
    "check_array_api_input": "scikit-learn skips it unless SCIPY_ARRAY_API was set before scipy was imported",
}


def quick(**changes):
    """A classifier that is hardly trained: its labels mean nothing, but everything else holds."""
    return RotationInvariantClassifier(**{"steps": 1, "random_state": 0, "device": "cpu", **changes})


@pytest.fixture(scope="module")
def trained():
    """30 steps on every other image of a table, enough to tell three digits apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equicaps.sklearn, "TrainConfig", functools.partial(TrainConfig, batch=16))
        return quick(steps=30).fit(TABLE[::2], LABELS[::2])


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """Save time in all other trainings: nothing that they test depends on the batch."""
    monkeypatch.setattr(equicaps.sklearn, "TrainConfig", functools.partial(TrainConfig, batch=4))


def turned(images, quarters=1):
    return np.rot90(images, quarters, axes=(1, 2))


def difference(first, second):
    """The angle between two angles, in degrees."""
    return np.abs((first - second + 180) % 360 - 180)


def checks():
    """The checks of scikit-learn. Their tables have any number of columns: each row is an image of one line."""
    for estimator, check in estimator_checks_generator(quick(image_shape=(1, -1))):
        name, variant = getattr(check, "func", check).__name__, getattr(check, "keywords", {})
        if not (variant and name in REPEATED):
            marks = [pytest.mark.xfail(reason=NOT_EXACT[name])] if name in NOT_EXACT else []
            yield pytest.param(estimator, check, id=name + "".join(variant), marks=marks)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_an_estimator_that_checks_nothing_is_refused():
    """Control: the checks that are left notice a classifier which takes NaN."""

    class Careless(RotationInvariantClassifier):
        def fit(self, images, labels):
            return super().fit(np.nan_to_num(np.asarray(images)), labels)

    [check] = [check for _, check in estimator_checks_generator(Careless()) if "nan_inf" in str(check)]
    with pytest.raises(AssertionError):
        check(Careless(steps=1, image_shape=(1, -1)))


@pytest.mark.parametrize("quarters", range(4))
def test_it_learns_what_an_image_shows_in_any_orientation(trained, quarters):
    assert trained.score(turned(IMAGES[1::4], quarters), LABELS[1::4]) > 0.8


def test_a_classifier_of_pixels_fails_on_the_rotated_images():
    """Control: the same table, another classifier of scikit-learn."""
    pixels = SVC(gamma=0.001).fit(TABLE[::2], LABELS[::2])
    assert pixels.score(TABLE[1::2], LABELS[1::2]) > 0.9
    assert pixels.score(turned(IMAGES[1::2]).reshape(-1, 64), LABELS[1::2]) < 0.7


@pytest.mark.parametrize("images", [IMAGES, IMAGES[:, :, 1:7], IMAGES[:, 1:, :]], ids=("8x8", "8x6", "7x8"))
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_quarter_turns_change_only_the_angle(trained, images, quarters):
    """f(rot90 x) = f(x) for labels and probabilities; angle(rot90 x) = angle(x) + 90."""
    before, after = images[:20], turned(images[:20], quarters)
    assert before.shape != after.shape or not np.array_equal(before, after)
    assert np.array_equal(trained.predict(after), trained.predict(before))
    np.testing.assert_allclose(trained.predict_proba(after), trained.predict_proba(before), atol=1e-4)
    angles, moved = trained.predict_angle(before), trained.predict_angle(after)
    assert np.isfinite(angles).mean() > 0.9
    assert np.nanmax(difference(moved, angles + 90 * quarters)) < 0.1
    assert np.nanmin(difference(moved, angles)) > 89  # control: not the same angles


@pytest.mark.filterwarnings("ignore:images are expected in:UserWarning")
def test_scaling_every_pixel_for_itself_breaks_the_guarantee(trained):
    """Control: a step in front that does not commute with quarter turns is noticed."""
    scaled = make_pipeline(StandardScaler().fit(TABLE), trained)
    before = scaled.predict_proba(TABLE[:20])
    after = scaled.predict_proba(turned(IMAGES[:20]).reshape(-1, 64))
    assert np.abs(before - after).max() > 0.01


def test_probabilities_belong_to_the_labels_and_hardly_depend_on_the_batch(trained):
    probabilities = trained.predict_proba(TABLE[:9])
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    assert np.array_equal(trained.classes_[probabilities.argmax(1)], trained.predict(TABLE[:9]))
    alone = np.concatenate([trained.predict_proba(row[None]) for row in TABLE[:9]])
    np.testing.assert_allclose(alone, probabilities, atol=1e-3)


def test_there_is_no_angle_without_a_pose(trained):
    assert np.isnan(trained.predict_angle(np.zeros((2, 64)))).all()
    assert np.isnan(quick(preset="steerable_cnn").fit(TABLE[:6], LABELS[:6]).predict_angle(TABLE[:2])).all()
    assert np.isfinite(trained.predict_angle(TABLE[:2])).all()  # control


SAME = {
    "rows": TABLE[:9],
    "images": IMAGES[:9],
    "channels first": IMAGES[:9, None],
    "channels last": IMAGES[:9, ..., None],
    "integers": IMAGES[:9].astype(int),
    "lists": IMAGES[:9].tolist(),
    "bytes": (IMAGES[:9] * 15.9375).astype(np.uint8),  # 16 becomes 255
}


@pytest.mark.parametrize("kind", SAME)
def test_images_are_taken_in_every_form(trained, kind):
    tolerance = 0.05 if kind == "bytes" else 1e-6  # rounded to whole numbers
    np.testing.assert_allclose(trained.predict_proba(SAME[kind]), trained.predict_proba(TABLE[:9]), atol=tolerance)


def test_colours_come_first_or_last():
    colours = np.random.default_rng(0).random((6, 8, 8, 3))
    classifier = quick().fit(colours, LABELS[:6])
    assert classifier.model_.format.channels == 3
    last, first = classifier.predict_proba(colours), classifier.predict_proba(np.moveaxis(colours, -1, 1))
    np.testing.assert_array_equal(last, first)
    assert np.abs(classifier.predict_proba(colours[..., ::-1]) - last).max() > 1e-4  # control: colours matter


@pytest.fixture
def handed_over(monkeypatch):
    """What a classifier hands over to the training, which does not take place."""

    def capture(classifier, images=TABLE, labels=LABELS, **known):
        given = []

        def take(*arguments, **options):
            given.extend(arguments)
            raise InterruptedError

        monkeypatch.setattr(equicaps.sklearn, "train", take)
        with pytest.raises(InterruptedError):
            classifier.fit(images, labels, **known)
        return given

    return capture


def test_the_training_of_the_library_is_used(handed_over):
    config, data, augmentation = handed_over(RotationInvariantClassifier())
    assert config.budget == Budget(minutes=1.0)
    assert augmentation == Augmentation(32, rotation=180.0)
    assert data.classes == ("nought", "one", "two")
    assert np.array_equal(data.labels.numpy(), NUMBERS)


def test_known_angles_reach_the_training(handed_over):
    angles = np.where(np.arange(len(TABLE)) % 2, np.nan, -90.0)
    _, data, _ = handed_over(RotationInvariantClassifier(), angles=angles)
    assert np.array_equal(data.angles.numpy(), angles % 360, equal_nan=True)
    for unknown in (None, np.full(len(TABLE), np.nan)):
        assert handed_over(RotationInvariantClassifier(), angles=unknown)[1].angles is None


@pytest.mark.parametrize("angles", [[0.0] * 5, [np.inf] * 6])
def test_angles_that_do_not_fit_are_refused(angles):
    with pytest.raises(ValueError, match="a finite number of degrees, or NaN, for each of the 6 images, but has"):
        quick().fit(TABLE[:6], LABELS[:6], angles=angles)


@pytest.mark.parametrize(
    ("side", "options", "frame", "size"),
    [(8, {}, 22, 32), (24, {}, 24, 32), (28, {}, 28, 32), (32, {}, 32, 32), (33, {}, 33, 40), (40, {}, 40, 40),
     (8, {"size": 32}, 32, 32), (28, {"size": 33}, 40, 40), (64, {"size": 32}, 32, 32),
     (8, {"preset": "paper"}, 22, 32), (34, {"preset": "paper"}, 44, 64)],
)  # fmt: skip
def test_images_are_padded_to_the_next_legal_size(handed_over, side, options, frame, size):
    config, data, augmentation = handed_over(quick(**options), np.ones((4, side, side)), list("abab"))
    assert tuple(data.images.shape) == (4, 1, frame, frame)
    assert config.model.image_size == augmentation.size == size


def test_images_of_the_size_of_the_network_are_resized_like_all_others(trained):
    assert trained.model_.format == ImageFormat(1, 32, 22)
    large = np.kron(IMAGES[:9], np.ones((4, 4)))
    probabilities, [resized] = trained.predict_proba(large), read(large / 16)
    scores = trained.model_(fit(resized.float(), trained.model_.format)).scores
    np.testing.assert_allclose(probabilities, scores.softmax(-1).detach(), atol=1e-5)
    scores = trained.model_(resized.float()).scores  # control: they could be taken for prepared images
    assert np.abs(probabilities - scores.softmax(-1).detach().numpy()).max() > 0.01


@pytest.mark.parametrize(
    ("values", "interval"),
    [([0.0, 0.5], (0, 1)), ([0, 16], (0, 16)), ([3.0, 5.0], (0, 5)), ([-1.0, 0.5], (-1, 1)), ([False, True], (0, 1)),
     (np.array([7, 255], np.uint8), (0, 1))],
    ids=str,
)  # fmt: skip
def test_values_are_scaled_to_the_unit_interval(handed_over, values, interval):
    classifier = quick()
    images = np.broadcast_to(np.reshape(values, (2, 1, 1)), (2, 24, 24))
    _, data, _ = handed_over(classifier, images, ["dark", "bright"])
    assert classifier.value_range_ == interval
    low, high = (0, 255) if np.asarray(values).dtype == np.uint8 else interval
    expected = (np.asarray(values, float) - low) / (high - low)
    np.testing.assert_allclose(data.images[:, 0, 12, 12].numpy(), expected, rtol=1e-6)


def test_later_images_are_scaled_like_those_of_the_training(trained):
    """One dark image among others must not become bright when it comes alone."""
    assert trained.value_range_ == (0, 16)
    dark = trained.predict_proba(TABLE[:9] / 4)
    assert np.abs(dark - trained.predict_proba(TABLE[:9])).max() > 0.01


def test_values_beyond_those_of_the_training_are_used_with_a_warning():
    classifier = quick().fit(TABLE[:6], LABELS[:6])
    classifier.predict(TABLE[:6])
    with pytest.warns(UserWarning, match=r"expected in \[0, 1\], but range from 0 to 3"):
        classifier.predict(TABLE[:6] * 3)


def test_the_same_seed_gives_the_same_classifier():
    X, y = TABLE[:12], LABELS[:12]
    first, same, other = (quick(random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("labels", [[3, -5], ["a", "ä"], [False, True], ["a\nb", "c"], [1.0, 2.0]], ids=str)
def test_labels_may_be_of_any_kind(labels):
    classifier = quick().fit(TABLE[:4], labels * 2)
    assert classifier.classes_.tolist() == sorted(labels)
    assert set(classifier.predict(TABLE[:4]).tolist()) <= set(labels)
    assert len(set(classifier.model_.classes)) == 2


def test_a_clone_has_the_parameters_but_not_the_model(trained):
    copied = clone(trained)
    assert copied.get_params() == trained.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(TABLE)
    assert copied.set_params(steps=3, size=40).get_params()["steps"] == 3


def test_a_pickled_classifier_predicts_the_same(trained):
    again = pickle.loads(pickle.dumps(trained))
    assert np.array_equal(again.predict_proba(TABLE[:9]), trained.predict_proba(TABLE[:9]))
    assert np.array_equal(again.predict_angle(TABLE[:9]), trained.predict_angle(TABLE[:9]))


def test_it_works_in_a_pipeline():
    """Bright and dark are exchanged before training and before predictions."""
    invert = FunctionTransformer(lambda values: 16 - values)
    X, y = TABLE[:12], LABELS[:12]
    pipeline = make_pipeline(invert, quick()).fit(X, y)
    alone = quick().fit(16 - X, y)
    assert np.array_equal(pipeline.predict_proba(X), alone.predict_proba(16 - X))
    assert np.array_equal(pipeline[-1].predict_angle(16 - X), alone.predict_angle(16 - X))
    assert not np.array_equal(pipeline.predict_proba(X), pipeline.predict_proba(16 - X))  # control


def test_it_can_be_cross_validated():
    X, y = TABLE[:12], LABELS[:12]
    folds = list(KFold(2).split(X))
    losses = cross_val_score(quick(), X, y, cv=folds, scoring="neg_log_loss")
    expected = []
    for training, test in folds:
        probabilities = quick().fit(X[training], y[training]).predict_proba(X[test])
        expected.append(-log_loss(y[test], probabilities))
    np.testing.assert_allclose(losses, expected)
    assert losses[0] != losses[1]


@pytest.mark.usefixtures("without_shape_checks")
def test_its_parameters_can_be_searched():
    """Also with numbers of NumPy, as ``np.arange`` makes them."""
    search = GridSearchCV(quick(), {"steps": np.arange(1, 3)}, cv=2, scoring="neg_log_loss")
    search.fit(TABLE[:12], LABELS[:12])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["steps"] == search.best_estimator_.steps
    assert np.array_equal(search.predict(TABLE[:5]), search.best_estimator_.predict(TABLE[:5]))


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    seen = []
    original = equicaps.sklearn.load_image_model
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(
        equicaps.sklearn, "load_image_model", lambda run: (seen.extend(run.iterdir()), original(run))[1]
    )
    quick().fit(TABLE[:4], LABELS[:4])
    assert seen  # the folder was there
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_training(tmp_path, monkeypatch):
    """``train`` would finish the step and return; here the interrupt goes on, so that a search ends, too."""
    train = functools.partial(equicaps.sklearn.train, watch=lambda progress: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(equicaps.sklearn, "train", train)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    classifier = quick(steps=3)
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(TABLE[:4], LABELS[:4])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotFittedError):
        classifier.predict(TABLE)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("options", "images", "message"),
    [
        ({}, TABLE[:4, :60], "must hold a square grey image, but has 60 values: give the shape .* image_shape="),
        ({"image_shape": (8, 6)}, TABLE[:4], r"must hold an image of shape \(8, 6\), but has 64 values"),
        ({"image_shape": (64,)}, TABLE[:4], r"must hold an image of shape \(64,\), but has 64 values"),
        ({"image_shape": "8x8"}, TABLE[:4], "must hold an image of shape 8x8, but has 64 values"),
        ({}, np.zeros((4, 2, 8, 8)), r"with 1, 3 or 4 channels, but have \(4, 2, 8, 8\)"),
        ({}, np.zeros((4, 1, 8, 8, 1)), r"images must have shape .* but have \(4, 1, 8, 8, 1\)"),
        ({}, np.full((4, 64), np.nan), "contains NaN"),
        ({"size": 0}, TABLE[:4], "`size` must be at least 1, but is 0"),
        ({"steps": 0}, TABLE[:4], "`steps` must be a positive number, but is 0"),
        ({"steps": None, "minutes": -1}, TABLE[:4], r"`minutes` must be a positive number, but is -1\.0"),
        ({"preset": "resnet"}, TABLE[:4], "unknown preset 'resnet'; choose one of 'steerable', "),
        ({"device": "tpu"}, TABLE[:4], "`device` must be auto, cpu, .*, but is 'tpu'"),
    ],
    ids=str,
)  # fmt: skip
def test_errors_say_what_was_expected_and_what_came(options, images, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(images, LABELS[:4])


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("name", "value"), [("size", 8.5), ("steps", "many"), ("minutes", "ten")])
def test_parameters_of_a_wrong_type_are_named(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an instance of"):
        quick(**{"steps": None, name: value}).fit(TABLE[:4], LABELS[:4])


def test_labels_of_one_class_are_refused():
    with pytest.raises(ValueError, match=r"at least 2 classes, but .* one class, .*'one'"):
        quick().fit(TABLE[:4], ["one"] * 4)


def test_rows_of_another_length_are_refused(trained):
    with pytest.raises(ValueError, match="X has 60 features, but RotationInvariantClassifier is expecting 64 features"):
        trained.predict(TABLE[:4, :60])


def test_without_scikit_learn_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "equicaps.sklearn")
    with pytest.raises(MissingPackageError, match=r"needs scikit-learn: pip install 'equicaps\[sklearn\]'"):
        importlib.import_module("equicaps.sklearn")
