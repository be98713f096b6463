"""``python -m pillion.cli``."""

from pillion.cli.main import main

main()
