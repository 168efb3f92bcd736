"""`python -m mavic` is the command line."""

from mavic.apps.cli import main

main()
