"""Small problems with changing instructions, solved exactly.

- `semi_mdp`: random semi-MDPs, the value of each instruction by itself, and the fixed point of each correction.
- `shaping`: the correction is not potential-based shaping.
"""
