"""Rollouts: the environment, the macro clock and the instruction clock as one."""
