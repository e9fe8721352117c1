"""The command ``equicaps``: parses, calls, prints. One file for each command."""
