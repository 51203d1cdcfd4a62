"""`python -m linnet`: the command, where it is not on the path."""

from linnet.cli.app import main

main()
