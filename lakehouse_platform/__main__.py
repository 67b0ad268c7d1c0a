"""`python -m lakehouse_platform` is the command `lakehouse`."""

from __future__ import annotations

from lakehouse_platform.cli.main import main

if __name__ == "__main__":
    main()
