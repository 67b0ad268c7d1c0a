"""Long runs of what CI does briefly: `python -m lakehouse_platform_tests.campaigns.<name> --help`."""
