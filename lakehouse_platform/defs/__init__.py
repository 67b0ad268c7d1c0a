"""The only package that imports Dagster."""
