"""`python -m osmosis_cli`: the same command as `osmosis`."""

from __future__ import annotations

from .main import main

if __name__ == "__main__":
    main()
