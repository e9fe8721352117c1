"""Does the suite notice when the mathematics is wrong? Each mutant changes one line in a copy; the tests must fail.

Run: python tests/mutants.py [NAME ...]. Runs all, or those named, and brings the table tests/mutants.md up to date.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.md"
SKIPPED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")

# The mirrored test file comes first, then those that notice most; -x stops at the first failure.
FIRST = ["groups/test_laws.py", "nn/test_group_capsules.py", "functional/test_routing.py"]
MATHEMATICS = (
    "groups",
    "functional",
    "nn",
    "models",
    "testing",
    "data/test_rotation.py",
    "test_losses.py",
    "test_metrics.py",
)
"""Only these have to notice: commands, pages and training are for other mistakes."""


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str


MUTANTS = (
    Mutant("wrong composition order", "groups/so3.py", "(_matrix(g) @ _matrix(h))", "(_matrix(h) @ _matrix(g))"),
    Mutant(
        "votes t ∘ p instead of p ∘ t",
        "nn/group_capsules.py",
        "compose(poses.unsqueeze(-3), self.transforms)",
        "compose(self.transforms, poses.unsqueeze(-3))",
    ),
    Mutant(
        "dropped 1/n in the weighted mean",
        "numerics.py",
        "return weighted_sum(elements, weights) * safe_reciprocal(total, noise_floor(weights, OPPOSED_WEIGHTS))",
        "return weighted_sum(elements, weights) + 0 * total",
    ),
    Mutant(
        "dropped 1/n in the agreement",
        "functional/routing.py",
        "distance = weighted_mean(distances.unsqueeze(-1), heard)",
        "distance = (distances * heard).sum(-1, keepdim=True)",
    ),
    Mutant("broken inverse on SO(2)", "groups/so2.py", "torch.stack((x, -y), dim=-1)", "torch.stack((-x, y), dim=-1)"),
    Mutant(
        "broken inverse on SE", "groups/special_euclidean.py", "-self.rotations.act(back, translation)", "-translation"
    ),
    Mutant(
        "SO(2) mean leaves the group",
        "groups/so2.py",
        "return safe_normalize(weighted_sum(elements, weights), noise_floor(weights))",
        "return weighted_sum(elements, weights) / (weights.sum(-1, keepdim=True) + 1e-9)",
    ),
    Mutant(
        "SO(3) mean leaves the group",
        "groups/so3.py",
        "return (projector.flatten(-2) @ forms) * uniqueness.unsqueeze(-1)",
        "return S",
    ),
    Mutant(
        "normalisation amplifies noise",
        "numerics.py",
        "return scaled * (torch.tanh(steepened(z)) / z)",
        "return scaled / z",
    ),
    Mutant(
        "δ of GL not left-invariant",
        "groups/gl.py",
        "relative = self.compose(self.inverse(g), h)",
        "relative = h - g + self.identity(dtype=g.dtype, device=g.device)",
    ),
    Mutant(
        "δ of SO(2) not left-invariant",
        "groups/so2.py",
        "(1 - (g * h).sum(-1)) / 2",
        "(1 - (g * h).sum(-1)) / 2 + 0.1 * (g - h)[..., 0] ** 2",
    ),
    Mutant(
        "δ of Scale not left-invariant",
        "groups/scale.py",
        "(self.log(g) - self.log(h)).abs().squeeze(-1)",
        "(g - h).abs().squeeze(-1)",
    ),
    Mutant(
        "σ on the wrong argument (δ, not -δ)",
        "functional/routing.py",
        "weights = sigma(-distances) * a",
        "weights = sigma(distances) * a",
    ),
    Mutant(
        "mean of σ instead of σ of the mean",
        "functional/routing.py",
        "sigma(-distance).squeeze(-1) * defined",
        "weighted_mean(sigma(-distances).unsqueeze(-1), heard).squeeze(-1) * defined",
    ),
    Mutant(
        "direct instead of semidirect SE",
        "groups/special_euclidean.py",
        "return torch.cat((rotation, self.act(g, h_translation)), dim=-1)",
        "return torch.cat((rotation, g.split(self._sizes, dim=-1)[1] + h_translation), dim=-1)",
    ),
    Mutant(
        "weights not multiplied by a",
        "functional/routing.py",
        "weights = sigma(-distances) * a",
        "weights = sigma(-distances)",
    ),
    Mutant(
        "one iteration too few",
        "functional/routing.py",
        "for _ in range(iterations):",
        "for _ in range(max(iterations - 1, 0)):",
    ),
    Mutant(
        "softmax over inputs",
        "functional/sigma.py",
        "torch.softmax(self.alpha * x, dim=-2)",
        "torch.softmax(self.alpha * x, dim=-1)",
    ),
    Mutant("β dropped from the sigmoid", "functional/sigma.py", "self.alpha * x + self.beta", "self.alpha * x"),
    Mutant(
        "activation of undefined poses",
        "functional/routing.py",
        "defined = group.presence(poses) * evidence(weights)",
        "defined = 1",
    ),
    Mutant(
        "silent inputs vote",
        "numerics.py",
        "return torch.tanh((activations / (FAINT_VOICE * loudest)).square())",
        "return torch.ones_like(activations) + 0 * loudest",
    ),
    Mutant(
        "clockwise rotations",
        "groups/so2.py",
        "torch.cat((torch.cos(algebra), torch.sin(algebra)), dim=-1)",
        "torch.cat((torch.cos(algebra), -torch.sin(algebra)), dim=-1)",
    ),
    Mutant("SE(2) exponential without arc", "groups/se2.py", "velocity) * _sinc(angle / 2)", "velocity)"),
    Mutant(
        "arithmetic instead of geometric mean",
        "groups/scale.py",
        "torch.exp(weighted_mean(self.log(elements), present))",
        "weighted_mean(elements, present)",
    ),
    Mutant("product weights ignored", "groups/product.py", "weight * factor.distance(p, q)", "factor.distance(p, q)"),
    Mutant(
        "singular matrices inverted to inf",
        "numerics.py",
        "inverse = adjugate / adjugate_size * safe_reciprocal(condition, SINGULAR)",
        "inverse = adjugate / adjugate_size / condition",
    ),
    Mutant(
        "Karcher step from the wrong side",
        "groups/karcher.py",
        "mean = group.compose(mean, group.exp(weighted_mean(tangents, weights)))",
        "mean = group.compose(group.exp(weighted_mean(tangents, weights)), mean)",
    ),
    Mutant(
        "NaN swallowed",
        "numerics.py",
        "return torch.matmul(weights.unsqueeze(-2), elements).squeeze(-2)",
        "return torch.matmul(weights.nan_to_num().unsqueeze(-2), elements.nan_to_num()).squeeze(-2)",
    ),
    Mutant(
        "undefined poses recover in the next iteration",
        "functional/routing.py",
        "poses = group.fade(group.mean(votes, weights), group.presence(poses))",
        "poses = group.mean(votes, weights)",
    ),
    Mutant(
        "a fading rotation shrinks the translation",
        "groups/special_euclidean.py",
        "return torch.cat((rotation, weighted_mean(translations, weights)), dim=-1)",
        "return torch.cat((rotation, weighted_mean(translations, weights) * rotation.square().sum(-1, True)), dim=-1)",
    ),
    Mutant(
        "votes t ∘ p instead of p ∘ t in windows",
        "nn/spatial_capsules.py",
        "self.group.compose(inputs.unsqueeze(3), t)",
        "self.group.compose(t, inputs.unsqueeze(3))",
    ),
    Mutant(
        "positions not aligned with the mean pose",
        "functional/alignment.py",
        "return group.act(group.inverse(mean).unsqueeze(-2), positions)",
        "return positions.expand(*mean.shape[:-1], *positions.shape)",
    ),
    Mutant(
        "gradient with y down",
        "functional/image_poses.py",
        "y = -_smooth(",
        "y = _smooth(",
    ),
    Mutant(
        "S_2 without its factor 2",
        "functional/moment_routing.py",
        "torch.cat((xx - yy, 2 * xy), dim=-1)",
        "torch.cat((xx - yy, xy), dim=-1)",
    ),
    Mutant(
        "S_0 counts undefined votes",
        "functional/moment_routing.py",
        "zeroth = torch.cat((xx - yy, 2 * xy), dim=-1), xx + yy",
        "zeroth = torch.cat((xx - yy, 2 * xy), dim=-1), a.sum(-2, keepdim=True).expand_as(xx)",
    ),
    Mutant(
        "harmonic kernel turned the wrong way",
        "functional/sparse_convolution.py",
        "out = out + x * responses[2 * order - 1] + y * responses[2 * order]",
        "out = out + x * responses[2 * order - 1] - y * responses[2 * order]",
    ),
    Mutant(
        "spline window turned the wrong way",
        "functional/sparse_convolution.py",
        "spline_basis(px * y - py * x,",
        "spline_basis(px * y + py * x,",
    ),
    Mutant(
        "steerable phase of the wrong frequency",
        "functional/steerable.py",
        "phase = torch.stack((torch.cos((m - n) * angle), torch.sin((m - n) * angle))) * profile",
        "phase = torch.stack((torch.cos((m + n) * angle), torch.sin((m + n) * angle))) * profile",
    ),
    Mutant(
        "low-pass filter off centre",
        "functional/steerable.py",
        "torch.tensor([1.0, 3.0, 3.0, 1.0]",
        "torch.tensor([0.0, 4.0, 3.0, 1.0]",
    ),
    Mutant(
        "features survive an undefined pose",
        "nn/steerable_capsules.py",
        "features * _presence(at) if self.needs_pose else features",
        "features",
    ),
    Mutant(
        "what half a turn does not change loses its class",
        "models/steerable.py",
        "needs_pose=number < len(config.blocks)",
        "needs_pose=True",
    ),
    Mutant(
        "planar routing: blocks summed in reading order",
        "functional/planar_routing.py",
        "(first + fourth) + (second + third)",
        "first + second + third + fourth",
    ),
    Mutant(
        "agreement not relative to the votes' strength",
        "nn/steerable_capsules.py",
        "length * safe_reciprocal(total, NO_EVIDENCE)",
        "length * 0.1 + 0 * total",
    ),
    Mutant(
        "spread loss without its square",
        "losses.py",
        "F.relu(margin - (target - activations)).square()",
        "F.relu(margin - (target - activations))",
    ),
    Mutant(
        "consistency turns the wrong way",
        "losses.py",
        "SO2().exp(torch.deg2rad(degrees).unsqueeze(-1)), first)",
        "SO2().exp(-torch.deg2rad(degrees).unsqueeze(-1)), first)",
    ),
    Mutant(
        "images turned clockwise",
        "data/rotation.py",
        "angle = torch.deg2rad(degrees)",
        "angle = -torch.deg2rad(degrees)",
    ),
    Mutant(
        "exactness looks at one quarter turn only",
        "metrics.py",
        "            yield still, network(torch.rot90(x, quarters, (-2, -1))), quarters",
        "            yield still, network(torch.rot90(x, 0, (-2, -1))), 0",
    ),
    Mutant(
        "planar routing: wrong derivative of the sigmoid",
        "functional/planar_routing.py",
        "slope = dw.sub_(gated).mul_(w)",
        "slope = dw.mul_(w)",
    ),
    Mutant(
        "planar routing: the fade has no gradient",
        "functional/planar_routing.py",
        "self.value * (4 * d_presence * (1 - self.value.square().sum(0)))",
        "0 * d_presence",
    ),
    Mutant(
        "spline without its second knot",
        "functional/spline.py",
        "3: ((2.0, 1 / 6), (1.0, -4 / 6))",
        "3: ((2.0, 1 / 6), (1.0, -3 / 6))",
    ),
    Mutant(
        "mean pose of the image not weighted by the features",
        "models/steerable.py",
        "weighted = (poses * activations.unsqueeze(-1)).mean((2, 3), keepdim=True)",
        "weighted = poses.mean((2, 3), keepdim=True)",
    ),
    Mutant(
        "the paper's features not weighted by agreement",
        "models/paper.py",
        "features = convolution(features, at) * activations",
        "features = convolution(features, at)",
    ),
    Mutant(
        "padding on one side only",
        "models/sizes.py",
        "return F.pad(images, (horizontal, horizontal, vertical, vertical))",
        "return F.pad(images, (2 * horizontal, 0, 2 * vertical, 0))",
    ),
    Mutant("law checker accepts everything", "testing/check.py", "if not report.ok:", "if False:"),
    Mutant(
        "errors measured on the wrong side",
        "testing/errors.py",
        "(actual - expected).abs().max()",
        "(actual - actual).abs().max()",
    ),
)


def run(mutant: Mutant) -> tuple[str, str]:
    """Verdict and what noticed it first."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "equicaps"
        shutil.copytree(ROOT, copy, ignore=SKIPPED)
        path = copy / "src" / "equicaps" / mutant.file
        text = path.read_text()
        if text.count(mutant.before) != 1:
            return "STALE", f"`{mutant.before}` occurs {text.count(mutant.before)} times in {mutant.file}"
        path.write_text(text.replace(mutant.before, mutant.after))
        environment = os.environ | {
            "PYTHONPATH": str(copy / "src"),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
        folder, _, module = f"tests/{mutant.file}".rpartition("/")
        mirrored = copy / folder / f"test_{module}"
        first = [mirrored] * mirrored.exists() + [copy / "tests" / name for name in FIRST]
        command += map(str, dict.fromkeys(first + [copy / "tests" / name for name in MATHEMATICS]))
        result = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        where = subprocess.run(
            [sys.executable, "-c", "import equicaps; print(equicaps.__file__)"],
            env=environment, cwd=copy, capture_output=True, text=True, check=True,
        )  # fmt: skip
        if str(copy) not in where.stdout:
            return "BROKEN", f"tested {where.stdout.strip()} instead of the copy"
        noticed = re.search(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
        return (
            ("killed", noticed.group(1))
            if result.returncode == 1 and noticed
            else ("SURVIVED", f"pytest exit {result.returncode}")
        )


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    verdict, detail = run(Mutant("none", "numerics.py", "CANCELLATION = ", "CANCELLATION = "))
    if verdict != "SURVIVED" or detail != "pytest exit 0":
        print(f"The unchanged copy does not pass ({detail}): mutants would die for the wrong reason.")
        return 1
    rows = dict(re.findall(r"^(\| (.+?) \| `.*)$", TABLE.read_text(), re.MULTILINE)) if TABLE.exists() else {}
    rows = {name: row for row, name in rows.items()}
    with ThreadPoolExecutor(2) as pool:
        for mutant, (verdict, detail) in zip(chosen, pool.map(run, chosen), strict=True):
            print(f"{verdict:<9} {mutant.name}: {detail}", flush=True)
            rows[mutant.name] = f"| {mutant.name} | `{mutant.file}` | {verdict} | `{detail}` |"
    lines = [rows[mutant.name] for mutant in MUTANTS if mutant.name in rows]
    killed = sum("| killed |" in line for line in lines)
    summary = f"{killed} of {len(MUTANTS)} killed"
    print(summary)
    title = f"# Mutants\n\n{summary}. Made by `python tests/mutants.py`, which runs all or those it is given.\n\n"
    head = "| mutant | file | verdict | first test to notice |\n|---|---|---|---|\n"
    TABLE.write_text(title + head + "\n".join(lines) + "\n")
    return 0 if killed == len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
