"""The paper's tables and figures, trained, measured and drawn; run from a checkout as ``python -m reproduction``."""
