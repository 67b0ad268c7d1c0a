"""A tour on generated data: `python -m lakehouse_platform.demo` fills a lakehouse and shows it at work."""
