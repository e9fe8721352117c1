"""A training that was interrupted continues as if it had not been interrupted."""

import os
import pkgutil
import signal
from dataclasses import replace

import pytest
import torch
from small_training import ROTATED, config, digits, network
from torch import nn

from equicaps.errors import DamagedFileError, UsageError
from equicaps.training import Intervals, Optimiser, load_checkpoint, train
from equicaps.training.checkpoint import save_checkpoint
from equicaps.training.log import EVALUATIONS, STEPS
from equicaps.training.recipe import differences


class Noisy(nn.Module):
    """A network that draws from torch's own generator in training, as dropout does."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, images):
        return self.inner(images + 0.05 * torch.rand_like(images) if self.training else images)


class PowerCutError(Exception):
    pass


def power_cut(step):
    def watch(progress):
        if progress.step == step:
            raise PowerCutError

    return watch


def accuracy(module, limit):
    return {
        "accuracy": float(module(torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(3))).scores[0, 0])
    }


def run(settings, folder, net=None, **options):
    return train(settings, digits(), ROTATED, folder=folder, network=net or Noisy(), evaluation=accuracy, **options)


def final_state(folder):
    tensors, content = load_checkpoint(folder)
    return tensors, {key: content[key] for key in ("step", "steps")}, [row["accuracy"] for row in content["curve"]]


def steps_in(log):
    return [line.split(",")[0] for line in log.read_text().splitlines()]


RECIPES = {
    "plain": {},
    "averaged, clipped, in steps": {"optimiser": Optimiser(schedule="step", clip=0.5, ema=0.9)},
    "one view": {"views": 1, "objective": replace(config().objective, consistency=0.0, spread=0.5)},
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_six_steps_and_six_more_are_twelve_bit_for_bit(recipe, tmp_path):
    settings = config(12, **recipe)
    torch.manual_seed(5)
    run(settings, tmp_path / "straight")
    torch.manual_seed(5)
    with pytest.raises(PowerCutError):
        run(settings, tmp_path / "cut", watch=power_cut(7))
    assert load_checkpoint(tmp_path / "cut")[1]["step"] == 6
    torch.manual_seed(6)  # whatever state the new process starts with
    run(settings, tmp_path / "cut", resume=True)
    straight, *numbers = final_state(tmp_path / "straight")
    resumed, *resumed_numbers = final_state(tmp_path / "cut")
    assert straight.keys() == resumed.keys()
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)
    assert numbers == resumed_numbers
    for log in (STEPS, EVALUATIONS):  # timings differ, rows do not
        rows = [steps_in(tmp_path / name / log) for name in ("straight", "cut")]
        assert rows[0] == rows[1]
        assert len(rows[0]) > 2


@pytest.mark.parametrize("lost", ["optimizer.", "random.", "network.inner.body.layers.0.pose_power"])
def test_that_comparison_notices_a_lost_part_of_the_state(lost, tmp_path, monkeypatch):
    """Control: optimiser state, random state and running statistics each matter."""
    settings = config(12)
    torch.manual_seed(5)
    run(settings, tmp_path / "straight")
    torch.manual_seed(5)
    with pytest.raises(PowerCutError):
        run(settings, tmp_path / "cut", watch=power_cut(7))

    def forgetful(folder, **options):
        tensors, content = load_checkpoint(folder)
        fresh = {name: torch.ones_like(value) for name, value in tensors.items() if name.startswith(lost)}
        if lost == "random.":
            fresh = {"random.cpu": torch.Generator().manual_seed(9).get_state()}
        return {**tensors, **fresh}, content

    monkeypatch.setattr("equicaps.training.loop.load_checkpoint", forgetful)
    run(settings, tmp_path / "cut", resume=True)
    straight, resumed = final_state(tmp_path / "straight")[0], final_state(tmp_path / "cut")[0]
    assert not all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_ctrl_c_saves_and_the_training_can_be_resumed(tmp_path):
    settings = config(10, intervals=Intervals(log_steps=2))  # by itself it would save only at the end

    def interrupt(progress):
        if progress.step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = run(settings, tmp_path, watch=interrupt)
    assert not stopped.finished
    assert 4 <= stopped.step <= 5
    assert load_checkpoint(tmp_path)[1]["step"] == stopped.step
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert run(settings, tmp_path, resume=True).finished


@pytest.mark.parametrize("call", ["equicaps.training.trainer.Trainer.advance", "os.fsync", "os.replace"])
def test_a_second_ctrl_c_ends_at_once_and_the_last_checkpoint_is_whole(call, tmp_path, monkeypatch):
    """After the first one, the second comes during the next step, or while the checkpoint is written or renamed."""
    settings = config(10, intervals=Intervals(checkpoint_steps=3))
    module, _, name = call.rpartition(".")
    owner = pkgutil.resolve_name(module)
    proceed = getattr(owner, name)

    def interrupted(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return proceed(*args, **options)

    def interrupt(progress):
        if progress.step == 4:
            os.kill(os.getpid(), signal.SIGINT)
            monkeypatch.setattr(owner, name, interrupted)

    torch.manual_seed(5)
    with pytest.raises(KeyboardInterrupt):
        run(settings, tmp_path / "cut", watch=interrupt)
    monkeypatch.undo()
    assert load_checkpoint(tmp_path / "cut")[1]["step"] in (3, 5)
    assert not list((tmp_path / "cut").glob("*.partial"))
    assert run(settings, tmp_path / "cut", resume=True).finished
    torch.manual_seed(5)
    run(settings, tmp_path / "straight")
    straight, resumed = final_state(tmp_path / "straight")[0], final_state(tmp_path / "cut")[0]
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, monkeypatch):
    settings = config(8, intervals=Intervals(checkpoint_steps=3))
    torch.manual_seed(5)
    run(settings, tmp_path / "straight")
    now = iter(range(2_000_000_000, 0, -86_400))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    torch.manual_seed(5)
    with pytest.raises(PowerCutError):
        run(settings, tmp_path / "cut", watch=power_cut(4))
    for number, path in enumerate(sorted((tmp_path / "cut").iterdir())):  # what the file system writes meanwhile
        os.utime(path, (number, number))
    assert run(settings, tmp_path / "cut", resume=True).finished
    straight, resumed = final_state(tmp_path / "straight"), final_state(tmp_path / "cut")
    assert all(torch.equal(straight[0][name], resumed[0][name]) for name in straight[0])
    assert straight[1:] == resumed[1:]


def test_a_training_is_not_overwritten_by_accident(tmp_path):
    run(config(2), tmp_path)
    with pytest.raises(UsageError, match="resume it, or choose a new folder"):
        run(config(2), tmp_path)


def test_resuming_with_other_settings_or_data_is_refused_by_name(tmp_path):
    run(config(2), tmp_path)
    with pytest.raises(UsageError, match=r"optimiser.rate: 0.006 -> 0.1"):
        run(config(2, optimiser=Optimiser(rate=0.1)), tmp_path, resume=True)
    with pytest.raises(UsageError, match=r"\(data.images: 40 -> 39\)"):
        train(config(2), digits(39), ROTATED, folder=tmp_path, network=Noisy(), resume=True)


def test_resuming_with_another_augmentation_is_refused_by_name(tmp_path):
    run(config(2), tmp_path)
    other = replace(ROTATED, shift=1.0)
    with pytest.raises(UsageError, match=r"\(augmentation.shift: 0.0 -> 1.0\)"):
        train(config(2), digits(), other, folder=tmp_path, network=Noisy(), resume=True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("Augmentation(size=32, scale=(0.5, 1.0))", "augmentation.scale: (1.0, 1.0) -> (0.5, 1.0)"),
        ("Other(size=32, scale=(1.0, 1.0))", "augmentation.kind: Augmentation -> Other"),
        ("<function turn>", "augmentation: Augmentation(size=32, scale=(1.0, 1.0)) -> <function turn>"),
        ("Augmentation(size=32)", "augmentation: Augmentation(size=32, scale=(1.0, 1.0)) -> Augmentation(size=32)"),
        ("Augmentation(size=32, scale=(1.0, 1.0))", ""),
    ],
)
def test_differences_of_augmentations_are_named_one_by_one_where_both_have_the_same_settings(other, message):
    before = {"batch": 8, "augmentation": "Augmentation(size=32, scale=(1.0, 1.0))"}
    assert differences(before, {"batch": 8, "augmentation": other}) == message


def test_a_checkpoint_from_before_augmentations_were_recorded_is_resumed(tmp_path):
    run(config(2), tmp_path)
    tensors, content = load_checkpoint(tmp_path)
    assert content.pop("augmentation") == repr(ROTATED)
    save_checkpoint(tmp_path, tensors, content)
    assert train(
        config(2), digits(), replace(ROTATED, shift=1.0), folder=tmp_path, network=Noisy(), resume=True
    ).finished


def test_a_function_is_the_same_augmentation_in_every_process(tmp_path):
    """Its name counts, its memory address does not."""

    def make(name):
        def augment(images, generator):
            return ROTATED(images, generator)

        augment.__qualname__ = name
        return augment

    first, again = make("mine"), make("mine")
    assert repr(first) != repr(again)
    train(config(2), digits(), first, folder=tmp_path, network=Noisy())
    assert train(config(2), digits(), again, folder=tmp_path, network=Noisy(), resume=True).finished
    with pytest.raises(UsageError, match="augmentation: <function mine> -> <function other>"):
        train(config(2), digits(), make("other"), folder=tmp_path, network=Noisy(), resume=True)


def test_a_finished_training_resumes_to_its_result(tmp_path):
    first = run(config(3), tmp_path)
    again = run(config(3), tmp_path, resume=True)
    assert again.finished
    assert again.step == 3
    assert again.curve == first.curve


def test_resuming_in_an_empty_folder_starts_a_training(tmp_path):
    assert run(config(2), tmp_path, resume=True).step == 2


def changed(data, part):
    """The same number of images, and one thing that differs."""
    last = torch.arange(len(data)).roll(1)
    touched = data.images.clone()
    touched[3, 0, 7, 7] += 1 / 255
    return replace(
        data,
        **{
            "the images": {"images": touched},
            "the order of the images": {"images": data.images[last]},
            "the classes of the images": {"labels": data.labels[last]},
            "the known angles": {"angles": data.angles + 1},
            "the names of the classes": {"classes": ("narrow", "broad", "square")},
        }[part],
    )


@pytest.mark.parametrize(
    "part",
    [
        "the images",
        "the order of the images",
        "the classes of the images",
        "the known angles",
        "the names of the classes",
    ],
)
def test_other_data_of_the_same_number_are_refused_unless_that_is_meant(tmp_path, part):
    settings, data = config(steps=4), replace(digits(), angles=torch.zeros(40))
    with pytest.raises(PowerCutError):
        train(
            config(steps=4, intervals=Intervals(checkpoint_steps=1)), data, ROTATED, folder=tmp_path, watch=power_cut(2)
        )
    other = changed(data, part)
    with pytest.raises(UsageError, match=f"started with other data: in .*, {part} changed since then"):
        train(settings, other, ROTATED, folder=tmp_path, resume=True)
    assert train(settings, other, ROTATED, folder=tmp_path, resume=True, other_images=True).finished


def test_a_checkpoint_without_a_fingerprint_is_continued(tmp_path):
    with pytest.raises(PowerCutError):
        train(
            config(steps=4, intervals=Intervals(checkpoint_steps=1)),
            digits(),
            ROTATED,
            folder=tmp_path,
            watch=power_cut(2),
        )
    tensors, content = load_checkpoint(tmp_path)
    del content["fingerprint"]
    save_checkpoint(tmp_path, tensors, content)
    assert train(config(steps=4), digits(), ROTATED, folder=tmp_path, resume=True).finished


def interrupted(folder):
    with pytest.raises(PowerCutError):
        train(config(steps=4), digits(), ROTATED, folder=folder, watch=power_cut(2))


@pytest.mark.parametrize(
    "content",
    [b"\x00\n\x00\n", b"\xff\xfe\x81", b"step,loss\nmany,1\n", b"a,b\n1,2\n", b"\x80", b'"' + b"x" * 200_000],
    ids=["zeros", "no text", "no number", "other columns", "half a letter", "endless field"],
)
def test_a_damaged_log_is_set_aside_and_the_training_goes_on(tmp_path, content, caplog):
    interrupted(tmp_path)
    (tmp_path / STEPS).write_bytes(content)
    assert train(config(steps=4), digits(), ROTATED, folder=tmp_path, resume=True).finished
    assert "is damaged" in caplog.text
    assert (tmp_path / f"damaged-{STEPS}").read_bytes() == content
    assert steps_in(tmp_path / STEPS) == ["step", "2", "4"]


@pytest.mark.parametrize("name", [STEPS, EVALUATIONS, "checkpoint.safetensors"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path, name):
    interrupted(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    (tmp_path / "previous.safetensors").unlink(missing_ok=True)
    with pytest.raises(DamagedFileError, match=f"{name} is refused: it is not a file but a pipe, socket or device"):
        train(config(steps=4), digits(), ROTATED, folder=tmp_path, resume=True)


def test_a_pipe_with_the_name_of_a_partial_file_is_replaced(tmp_path):
    interrupted(tmp_path)
    os.mkfifo(tmp_path / ".checkpoint.safetensors.partial")
    assert train(config(steps=4), digits(), ROTATED, folder=tmp_path, resume=True).finished
