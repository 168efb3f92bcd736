"""Rollouts: the environment, the macro clock and the instruction clock as one.

`rollout.rollout` plays whole episodes with a `rollout.Policy`. `step.InstructedEnv` is an environment with its
instructions; `step.reset`, `step.step` and `step.interrupt` play it tick by tick. `plan` searches for
the best plan of a small world. `trial` plays every kind with
random teams and counts. `threefry` draws random numbers.
"""
