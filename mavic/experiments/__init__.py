"""Experiments: configurations are trained and evaluated, and records and policy files are written."""
