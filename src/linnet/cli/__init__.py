"""The command `linnet`: one file a verb.

Verbs import what they need when they run, so that `linnet --help` stays quick.
"""

from linnet.cli.app import main

__all__ = ["main"]
