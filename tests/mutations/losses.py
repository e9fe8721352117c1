"""Mistakes in the losses."""

from mutations.mutant import mutants_of

MUTANTS = mutants_of(
    "src/equicaps/losses.py",
    ("test_losses.py",),
    (
        "spread loss without its square",
        "F.relu(margin - (target - activations)).square()",
        "F.relu(margin - (target - activations))",
    ),
    ("spread loss with the wrong sign", "margin - (target - activations)", "margin - (activations - target)"),
    ("spread loss summed over the batch", "(gap.sum(1) - margin**2).mean()", "(gap.sum(1) - margin**2).sum()"),
    ("margin that does not grow", "spread_margin(progress, *self.margin)", "spread_margin(0.0, *self.margin)"),
    ("margin beyond its end", "min(max(progress, 0.0), 1.0)", "max(progress, 0.0)"),
    ("margins of the objective ignored", "spread_margin(progress, *self.margin)", "spread_margin(progress)"),
    ("label smoothing ignored", "labels, label_smoothing=smoothing)", "labels)"),
    ("absolute instead of squared reconstruction error", "F.mse_loss", "F.l1_loss"),
    (
        "weight of the consistency loss ignored",
        "total + self.consistency * self._consistency(",
        "total + self._consistency(",
    ),
    (
        "frames compared with themselves",
        "same & ~torch.eye(len(poses), dtype=torch.bool",
        "same & ~torch.zeros(len(poses), len(poses), dtype=torch.bool",
    ),
    ("upright shapes compared with other classes", "labels[:, None] == labels)", "labels[:, None] == labels[:1])"),
    ("only views of one shape compared", "if self.upright:\n            return", "if False:\n            return"),
    (
        "consistency rotates the wrong way",
        "SO2().exp(torch.deg2rad(degrees).unsqueeze(-1)), first)",
        "SO2().exp(-torch.deg2rad(degrees).unsqueeze(-1)), first)",
    ),
    ("consistency with the views exchanged", "after - before", "before - after"),
    ("consistency of different images", "len(labels) % 2 or not torch.equal(*labels.chunk(2))", "len(labels) % 2"),
    (
        "unknown angles count as 0",
        "torch.where(known, 1 - (poses * target).sum(-1), 0.0)",
        "(1 - (poses * target).sum(-1))",
    ),
    ("known angles of a batch not averaged", "0.0).mean() / share", "0.0).mean()"),
    (
        "poses of the predicted class instead of the true one",
        "device=labels.device), labels]",
        "device=labels.device), output.scores.argmax(-1)]",
    ),
)
