"""`python -m linnet.cli`, where the command is not on the path."""

from linnet.cli.app import main

main()
