"""Simulators in plain Python as worlds, and macros made of primitive actions.

`python_world` makes a world of a PettingZoo `ParallelEnv`, a Gymnasium environment with several agents' actions, or a
class with `reset` and `step`. The compiled rollout asks the host for each tick, so training, evaluation, replays and
the playground need no second driver.

- `worlds`: `python_world`.
- `description`: what a Python world is made of.
- `adapters`: the three sorts of environment behind one interface.
- `controllers`: macros for Python simulators: go to a place, wait, a sequence, a timeout.
- `macro_simulator`: a simulator and its controllers, tick by tick.
- `worker`: the process that steps simulators.
- `processes`: where simulators are held: in workers, or in this process.
- `cluster`: worker processes on a Ray cluster.
- `episodes`: how far each simulator is, and which are free.
- `pool`: all simulators of a world, their processes, and what becomes of those that fail.
- `env`: the environment that asks the pool.
- `check`: tries a simulator before it is used.
- `compiled`: the macro layer for JAX environments, with the same words as `controllers`.
- `grids`: shortest paths, for both.
"""
