"""``equicaps info``: the card of a model."""

from equicaps.cli.options import AsJson, Checkpoint


def info(checkpoint: Checkpoint = "digits", as_json: AsJson = False) -> None:
    """Show a model's card: task, data, measured figures, licence, convention.

    `equicaps info digits`

    `equicaps info runs/mine --json`
    """
