"""The paper's tables and figures: what is trained, measured and drawn. ``equicaps reproduce`` runs it."""
