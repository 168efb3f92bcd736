"""Bridges to other libraries. They need the extra `interop`.

`pettingzoo` and `gymnasium` are worlds as environments, `ids` their versioned names. `onnx` writes a team's actors,
`team_folder` a whole team for `mavic.runtime`, `marl_eval` writes records. `behaviour_tree` has a leaf for py_trees.
"""
