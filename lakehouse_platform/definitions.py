"""The module that Dagster loads: `dagster dev` from the project's root, with nothing set."""

from lakehouse_platform.defs.build import build_defs

defs = build_defs()
