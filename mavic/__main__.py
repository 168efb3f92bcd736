"""`python -m mavic` is the command line."""

from mavic.shells.cli import main

main()
