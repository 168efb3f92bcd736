"""Runs a team that `mavic export onnx box_pushing/mavic --out team.onnx` wrote. It needs only onnxruntime and numpy.

python examples/run_onnx.py team.onnx
"""

import json
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
facts = {key: json.loads(text) for key, text in session.get_modelmeta().custom_metadata_map.items()}
shapes = {given.name: given.shape for given in session.get_inputs()}
random = np.random.default_rng(0)

agents = len(facts["agents"])
memory = np.zeros(shapes["memory"], np.float32)
macro = np.full(agents, -1)
for tick in range(4):
    asked = facts["kinds"][0] if tick >= 2 else None
    probabilities, memory = session.run(
        ["probabilities", "next_memory"],
        {
            "observation": np.zeros(
                shapes["observation"], np.float32
            ),  # yours comes from the world
            "last_macro": macro,
            "kind": np.full(agents, 1 + facts["kinds"].index(asked) if asked else 0),
            "available": np.arange(shapes["available"][1])[None]
            < np.array([[len(macros)] for macros in facts["macros"]]),
            "idle": np.ones(agents, bool),
            "memory": memory,
        },
    )
    macro = np.array([random.choice(len(row), p=row / row.sum()) for row in probabilities])
    print(tick, asked, [facts["macros"][i][m] for i, m in enumerate(macro)])
