"""Mistakes in the protocols, the records and the tables of the reproduction."""

from mutations.mutant import mutants_of

MUTANTS = (
    *mutants_of(
        "reproduction/protocols.py",
        ("reproduction/test_protocols.py",),
        ("validation digits in training", "slice(None, 50_000)", "slice(None, 60_000)"),
        (
            "tested on training digits",
            'ROTATED, lambda: AnyAngle(mnist("test"))',
            'ROTATED, lambda: AnyAngle(mnist("train"))',
        ),
        (
            "trained on the test split of MNIST-rot",
            'lambda: regenerate_mnist_rot("train", mnist("train"), mnist("test")),',
            'lambda: regenerate_mnist_rot("test", mnist("train"), mnist("test")),',
        ),
        ("affNIST trained on rotated digits", "        TRANSLATED,\n", "        replace(ROTATED, size=40),\n"),
        (
            "upright digits trained at any angle",
            'lambda: mnist("train"),\n        UPRIGHT',
            'lambda: mnist("train"),\n        ROTATED',
        ),
        (
            "MNIST-rot tested without its margin",
            'AsTheyAre(padded(regenerate_mnist_rot("test"',
            'AsTheyAre((regenerate_mnist_rot("test"',
        ),
        (
            "quick runs trained on test digits",
            'training=lambda: embedded_digits("train")',
            'training=lambda: embedded_digits("test")',
        ),
        (
            "quick runs tested on training digits",
            "digits.take(slice(0, 0)), digits,",
            'embedded_digits("train"), digits,',
        ),
    ),
    *mutants_of(
        "reproduction/results.py",
        ("reproduction/test_trainings.py",),
        ("quick trainings taken for full ones", 'if record["quick"] != self.quick:', "if False:"),
        ("trainings with other settings accepted", "if before.get(key) != value", "if key not in before"),
        (
            "figures of an old measurement kept",
            'record["figures"] | dict(figures)',
            'dict(figures) | record["figures"]',
        ),
        ("quick pictures published", "return not self.quick and self.folder", "return self.folder"),
    ),
    *mutants_of(
        "reproduction/pages.py",
        ("reproduction/test_written_pages.py",),
        ("quick results let into tables", 'if record.get("quick"):', 'if record.get("quick") is None:'),
    ),
    *mutants_of(
        "reproduction/published.py",
        ("reproduction/test_published.py",),
        ("a goal missed by a hair", "value >= self.target if", "value > self.target if"),
        ("degrees that should be large", "else value <= self.target", "else value >= self.target"),
    ),
    *mutants_of(
        "reproduction/table1b.py",
        ("reproduction/test_naive.py", "reproduction/test_reproduce.py::test_histogram_bins_and_classes"),
        ("naive means over rows instead of blocks", "blocks.sum((2, 4))", "blocks.sum((2, 3))"),
        ("angles of another seed", "manual_seed(0)) * 360\n    parts", "manual_seed(1)) * 360\n    parts"),
        ("histograms of half the circle", "min=0, max=180)", "min=0, max=90)"),
    ),
    *mutants_of(
        "reproduction/galaxies.py",
        ("reproduction/test_galaxies_experiment.py",),
        ("galaxies trained on the test split", 'training.data("train", root),', 'training.data("test", root),'),
        (
            "galaxies chosen on the test split",
            'AnyAngle(training.data("valid", root)',
            'AnyAngle(training.data("test", root)',
        ),
        ("test galaxies balanced by repetition", 'found.balanced() if split == "train" else found', "found.balanced()"),
        ("difference with the wrong sign", "correct.mean(0) - expected.mean(0)", "expected.mean(0) - correct.mean(0)"),
        (
            "seeds counted as further images",
            "correct.mean(0).sum().item(), len(labels))",
            "correct.sum().item(), count)",
        ),
        ("two quarter turns counted for three", "for count in (1, 2, 3)]", "for count in (0, 1, 2)]"),
    ),
)
