"""The order of the rooms: docs/architecture.md as a test."""

import ast
import functools
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

RINGS = {
    "mathematics": (
        "errors",
        "_cache",
        "numerics",
        "_checks",
        "groups",
        "functional",
        "nn",
        "models",
        "losses",
        "metrics",
        "testing",
    ),
    "road": ("_files", "_tensor_files", "images", "data", "inference", "training"),
    "application": ("drawing", "sklearn", "serve", "cli"),
}
"""From the innermost room to the outermost: a room may import those before it."""
LEVEL = {name: level for level, name in enumerate(name for ring in RINGS.values() for name in ring)}
CORE = {"torch", "numpy", "jaxtyping", "safetensors", "roma"}
OUTSIDE = ("reproduction", "benchmarks", "examples", "tests", "docs")


def room(module):
    """``equicaps.nn.kernels`` -> ``nn``; the package itself has none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, root):
    """Every module that a file imports, deferred imports too; only what type checkers alone read does not count."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                visit(other)
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                if (node.module, alias.name) == ("equicaps", "__version__"):
                    continue  # known before any room is imported
                submodule = root / Path(*node.module.split("."), alias.name)
                there = submodule.with_suffix(".py").exists() or (submodule / "__init__.py").exists()
                found.add(f"{node.module}.{alias.name}" if there else node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def graph(root):
    return {module_name(path, root): imports(path, root) for path in sorted((root / "equicaps").rglob("*.py"))}


def problems(root):
    """What is wrong with the order of the rooms below ``root``, in words."""
    found = []
    modules = graph(root)
    for module, targets in modules.items():
        for target in sorted(targets):
            top = target.split(".")[0]
            if top in OUTSIDE:
                found.append(f"{module} imports {target}, which is not in the wheel")
            if top != "equicaps":
                if room(module) in RINGS["mathematics"] and top not in CORE | sys.stdlib_module_names:
                    found.append(f"{module} is mathematics, but imports {target}")
                continue
            here, there = room(module), room(target)
            if here and not there:
                found.append(f"{module} imports the package itself, from which every room can be reached")
            if here and there and LEVEL[there] > LEVEL[here]:
                found.append(f"{module} imports {target}, which is above it")
    found += [f"cycle: {' -> '.join(cycle)}" for cycle in cycles(modules)]
    return found


def cycles(modules):
    """Modules that import each other in a circle, each circle once."""
    state, stack, found = {}, [], []

    def visit(module):
        state[module] = "open"
        stack.append(module)
        for target in sorted(modules.get(module, ())):
            if target not in modules:
                continue
            if state.get(target) == "open":
                found.append([*stack[stack.index(target) :], target])
            elif target not in state:
                visit(target)
        stack.pop()
        state[module] = "closed"

    for module in modules:
        if module not in state:
            visit(module)
    return found


def test_every_room_has_its_place():
    rooms = {
        path.stem for path in (SOURCE / "equicaps").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"__init__"} == set(LEVEL)


def test_rooms_import_only_those_below_them_and_there_are_no_cycles():
    assert problems(SOURCE) == []


@pytest.fixture
def house(tmp_path):
    """A copy in miniature that is in order, to be disturbed."""

    def build(**files):
        package = tmp_path / "equicaps"
        for name, text in {
            "__init__": "",
            "groups/__init__": "",
            "nn/__init__": "",
            "cli/__init__": "",
            **files,
        }.items():
            path = package / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return problems(tmp_path)

    return build


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"groups/a": "from equicaps.nn import x"}, "equicaps.groups.a imports equicaps.nn, which is above it"),
        ({"nn/a": "def f():\n    import equicaps.cli"}, "equicaps.nn.a imports equicaps.cli, which is above it"),
        (
            {"nn/a": "def f():\n    from equicaps import load"},
            "equicaps.nn.a imports the package itself, from which every room can be reached",
        ),
        (
            {"nn/a": "import equicaps\nequicaps.cli"},
            "equicaps.nn.a imports the package itself, from which every room can be reached",
        ),
        ({"nn/a": "import rich"}, "equicaps.nn.a is mathematics, but imports rich"),
        ({"cli/a": "import reproduction"}, "equicaps.cli.a imports reproduction, which is not in the wheel"),
        (
            {"nn/a": "import equicaps.nn.b", "nn/b": "def f():\n    from equicaps.nn import a"},
            "cycle: equicaps.nn.a -> equicaps.nn.b -> equicaps.nn.a",
        ),
    ],
)  # fmt: skip
def test_disorder_is_refused(house, files, complaint):
    """Control: each kind of disorder, deferred imports too, is named."""
    assert complaint in house(**files)


def test_a_house_in_order_passes(house):
    assert (
        house(**{"nn/a": "import torch\nfrom equicaps.groups import x", "cli/a": "import rich\nimport equicaps.nn.a"})
        == []
    )


@functools.cache
def lines(ring):
    paths = [
        path
        for name in RINGS[ring]
        for path in (*SOURCE.glob(f"equicaps/{name}.py"), *SOURCE.glob(f"equicaps/{name}/**/*.py"))
    ]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def test_the_mathematics_stays_small():
    assert lines("mathematics") < 8300
    assert lines("application") < lines("road")


def test_the_wheel_stays_small_and_holds_only_the_package():
    """Under 6.5 MB, with five models: a wheel deflates every file of the package, and holds nothing else."""
    files = [path for path in (SOURCE / "equicaps").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 6_450_000  # the rest: names and metadata
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/equicaps"]}


ROAD = (
    "cli/main.py",
    "cli/predict.py",
    "inference/model.py",
    "images/decode.py",
    "images/preparation.py",
    "models/sizes.py",
    "models/network.py",
    "models/steerable.py",
    "nn/steerable_capsules.py",
    "functional/steerable.py",
    "groups/so2.py",
    "inference/prediction.py",
)
"""The files that a newcomer's image passes from the command line to the printed angle, in that order."""

BENEATH = {
    "numerics.py",
    "_checks.py",
    "_files.py",
    "models/output.py",
    "nn/batch_norm.py",
    "groups/base.py",
    "cli/answers.py",
    "cli/reporting.py",
    "cli/terminal.py",
    "images/background.py",
    "images/bounds.py",
    "images/resizing.py",
    "images/ahead.py",
    "inference/angle_error.py",
    "inference/batches.py",
}
"""What the road stands on: arithmetic, checks, torch's own layer, messages, colours, sizes, threads, batches, a table
of errors. Nothing that leads elsewhere."""

TRACER = """
import sys
import threading
from importlib import import_module
from pathlib import Path
import equicaps
command = import_module("equicaps.cli.predict")
package, passed, loaded = Path(equicaps.__file__).parent, [], []
load = command.load
def load_first(name):
    sys.setprofile(None)
    model = load(name)
    sys.setprofile(watch)
    return model
command.load = load_first
def watch(frame, event, _):
    path = Path(frame.f_code.co_filename)
    if event == "call" and path.is_relative_to(package) and str(path) not in passed:
        passed.append(str(path))
from equicaps.cli.main import app
sys.argv = ["equicaps", "predict", sys.argv[1]]
sys.setprofile(watch)
threading.setprofile(watch)  # files are read in threads
try:
    app()
except SystemExit as ended:
    sys.setprofile(None)
    print(*(Path(path).relative_to(package).as_posix() for path in passed), file=sys.stderr)
    sys.exit(ended.code)
"""


def test_an_image_takes_a_road_of_twelve_files(tmp_path):
    """Traced in a process of its own, from the command to the printed angle; loading the model is another road."""
    from PIL import Image

    from equicaps.data import embedded_digits

    digit = (embedded_digits("test").images[3, 0] * 255).byte().numpy()
    Image.fromarray(digit).save(tmp_path / "digit.png")
    done = subprocess.run(
        [sys.executable, "-c", TRACER, str(tmp_path / "digit.png")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    passed = set(done.stderr.split())
    assert len(ROAD) <= 12
    assert passed - BENEATH == set(ROAD)


def test_the_page_shows_the_road():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    places = [page.index(f"`{name}`") for name in ROAD]
    assert places == sorted(places)
