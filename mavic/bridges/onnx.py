"""A team's actors as an ONNX model, to run them without JAX. `examples/run_onnx.py` uses one with onnxruntime alone.

| input | shape | meaning |
|---|---|---|
| `observation` | [N, O] float | what each agent sees |
| `last_macro` | [N] int64 | the macro that ran before; -1 for none |
| `kind` | [N] int64 | the instruction of each agent; 0 for none, else 1 + its place in `kinds` |
| `available` | [N, M] bool | the macros that each agent may choose |
| `idle` | [N] bool | who decides now; the memory of the others stays |
| `memory` | [N, R, H] float | zeros at the start of an episode |

The outputs are `probabilities` [N, M] and `next_memory` [N, R, H], which is the `memory` of the next call. The model's
metadata names agents, macros and kinds (JSON).

`model_of(team, hears="vectors")` is the form that `mavic.runtime` runs: three memories at once, of actors that hear the
first instruction alone, the second alone, and silence. In place of `kind` it takes `heard` [3, N, D] float, what each
agent hears, and `told` [3, N] bool, who has an instruction. `memory` is [3, N, R, H]. In place of probabilities it
returns `logits` [3, N, M] of all macros, so `available` is no input.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mavic.learn.gru import SLOPE
from mavic.storage import files
from mavic.teams.facts import PolicyError
from mavic.teams.team import TeamPolicy

OPSET, IR_VERSION = 17, 8
MEMORIES = 3  # of actors that hear the first instruction, the second, and silence
REFUSED = -1e9  # the logit of a macro that is not available


_ALL_BUT_LAST = (np.array([0]), np.array([-1]))  # where a slice starts and ends


class _Graph:
    """Collects nodes and constants. Each method adds a node and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def floats(self, x: str) -> str:
        return self.add("Cast", x, to=TensorProto.FLOAT)

    def spread(self, x: str, *axes: int) -> str:
        return self.add("Unsqueeze", x, self.constant(np.array(axes, np.int64)))

    def drop(self, x: str, *axes: int, output: str = "") -> str:
        return self.add("Squeeze", x, self.constant(np.array(axes, np.int64)), output=output)

    def dense(self, x: str, weight: Any, bias: Any) -> str:
        """x [..., N, R, 1, I] times weight [N, R, I, J] plus bias [N, R, J]."""
        product = self.add("MatMul", x, self.constant(weight))
        return self.add("Add", product, self.constant(np.asarray(bias)[:, :, None]))

    def leaky(self, x: str) -> str:
        return self.add("LeakyRelu", x, alpha=SLOPE)

    def thirds(self, x: str, width: int) -> list[str]:
        return [
            self.add(
                "Slice", x, *(self.constant(np.array([n], np.int64)) for n in (start, end, -1))
            )
            for start, end in ((0, width), (width, 2 * width), (2 * width, 3 * width))
        ]


def export(team: TeamPolicy, path: str | Path) -> Path:
    """Write a team's actors as an ONNX model.

    Args:
        team: a team in which each agent has its own actor, a GRU.
        path: the file to write; the ending `.onnx` is added if it is missing.

    Returns:
        The path of the file.
    """
    path = files.with_ending(path, ".onnx")
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model_of(team), str(path))
    return path


def model_of(team: TeamPolicy, hears: str = "kinds") -> onnx.ModelProto:
    """Return a team's actors as an ONNX model.

    Args:
        team: a team in which each agent has its own actor, a GRU.
        hears: what the model is told of instructions: "kinds" (numbers), or "vectors" (what the team hears of them).
    """
    shape, actor = team.shape, team.weights.actor
    own_actors = (shape.agents, shape.parts, shape.hidden, team.macro_count)
    if "gru" not in actor or actor["head"]["w"].shape != own_actors:
        raise PolicyError(
            "only teams in which each agent has its own actor, a GRU, can be exported"
        )
    if shape.view != "own" or shape.layer_norm:
        raise PolicyError(
            f"actors of {team.facts['config']['backbone']} cannot be exported: they see more than their own "
            "observation, or normalise a layer"
        )
    weights = {name: _plain(layer) for name, layer in actor.items()}
    sizes = dict(N=shape.agents, M=shape.macros, R=shape.parts, H=shape.hidden, O=shape.observation)
    sizes |= dict(D=shape.embedding, S=MEMORIES)
    graph = _Graph()
    by_kind = hears == "kinds"
    said = graph.add("Greater", "kind", graph.constant(np.int64(0))) if by_kind else "told"
    heard = graph.add("Gather", graph.constant(_vectors(team)), "kind") if by_kind else "heard"
    heard = graph.spread(heard, -2)  # [..., N, 1, D]
    memory = _remember(graph, team, weights, said, heard)
    logits = _logits(graph, team, weights, said, heard, memory)
    if by_kind:
        allowed = graph.add("Where", "available", logits, graph.constant(np.float32(REFUSED)))
        graph.add("Softmax", allowed, axis=1, output="probabilities")
    else:
        graph.add("Identity", logits, output="logits")
    keep = graph.spread("idle", 1, 2)
    graph.add("Where", keep, graph.drop(memory, -2), "memory", output="next_memory")
    told = {
        True: [_value("kind", TensorProto.INT64, sizes, "N")],
        False: [
            _value("heard", TensorProto.FLOAT, sizes, "SND"),
            _value("told", TensorProto.BOOL, sizes, "SN"),
        ],
    }[by_kind]
    lead = "" if by_kind else "S"
    available = [_value("available", TensorProto.BOOL, sizes, "NM")] if by_kind else []
    made = helper.make_graph(
        graph.nodes,
        "team",
        [
            _value("observation", TensorProto.FLOAT, sizes, "NO"),
            _value("last_macro", TensorProto.INT64, sizes, "N"),
            *told,
            *available,
            _value("idle", TensorProto.BOOL, sizes, "N"),
            _value("memory", TensorProto.FLOAT, sizes, f"{lead}NRH"),
        ],
        [
            _value("probabilities" if by_kind else "logits", TensorProto.FLOAT, sizes, f"{lead}NM"),
            _value("next_memory", TensorProto.FLOAT, sizes, f"{lead}NRH"),
        ],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    facts = {name: json.dumps(team.facts[name]) for name in ("world", "agents", "macros", "kinds")}
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return model


def _remember(
    graph: _Graph, team: TeamPolicy, weights: dict[str, Any], said: str, heard: str
) -> str:
    """Return the new memory [N, R, 1, H]."""
    shape, first = team.shape, weights["first"]
    ran = graph.add(
        "Equal", graph.spread("last_macro", 1), graph.constant(np.arange(shape.macros)[None])
    )
    parts = ["observation", graph.floats(ran)] if shape.last_macro else ["observation"]
    plain = shape.observation + shape.macros * shape.last_macro
    seen = graph.spread(graph.add("Concat", *parts, axis=1), 1, 2)
    entered = graph.dense(seen, first["w"][:, :, :plain], first["b"])
    entered = graph.add("Add", entered, _heard(graph, team, weights, said, heard, plain))
    second = graph.leaky(graph.dense(graph.leaky(entered), **_layer(weights["second"])))
    gru, width = weights["gru"], shape.hidden
    before = graph.spread("memory", -2)
    inputs = graph.thirds(graph.dense(second, gru["wi"], gru["bi"]), width)
    hidden = graph.thirds(graph.dense(before, gru["wh"], gru["bh"]), width)
    reset, update = (graph.add("Sigmoid", graph.add("Add", inputs[i], hidden[i])) for i in (0, 1))
    new = graph.add("Tanh", graph.add("Add", inputs[2], graph.add("Mul", reset, hidden[2])))
    change = graph.add("Mul", update, graph.add("Sub", before, new))
    return graph.add("Add", new, change)


def _heard(
    graph: _Graph, team: TeamPolicy, weights: dict[str, Any], said: str, heard: str, plain: int
) -> str:
    """Return what instructions add to the first layer [N, R, 1, H]; only the last part hears."""
    shape, weight = team.shape, weights["first"]["w"][:, -1]
    project = weights["project"]["own"][:, -1]
    rows = project @ weight[:, plain : plain + shape.projected]  # [N, D, H]
    own = graph.add("MatMul", heard, graph.constant(rows))
    others = np.ones((shape.agents, shape.agents), np.float32) - np.eye(
        shape.agents, dtype=np.float32
    )
    mates = graph.add("MatMul", graph.constant(others), graph.spread(graph.floats(said), -1))
    mates = graph.floats(graph.add("Greater", mates, graph.constant(np.float32(0))))
    bit = graph.add(
        "Mul", graph.spread(mates, -1), graph.constant(weight[:, plain + shape.projected :])
    )
    hears = (np.arange(shape.parts) == shape.parts - 1).astype(np.float32)[None, :, None, None]
    total = graph.spread(graph.add("Add", own, bit), -3)
    return graph.add("Mul", total, graph.constant(hears))


def _logits(
    graph: _Graph, team: TeamPolicy, weights: dict[str, Any], said: str, heard: str, memory: str
) -> str:
    """Return the logits of all macros [N, M]."""
    features = graph.leaky(graph.dense(memory, **_layer(weights["third"])))
    heads = graph.drop(graph.dense(features, **_layer(weights["head"])), -2)
    parts = [_part(graph, heads, part, -2) for part in range(team.shape.parts)]
    if "kind_heads" in weights:
        parts[-1] = graph.add("Add", parts[-1], _of_kinds(graph, team, weights, heard, features))
    if len(parts) == 1:
        return parts[0]
    instructed = graph.add("Add", *parts) if team.shape.residual else parts[1]
    count = graph.add("ReduceMax", graph.floats(said), keepdims=1, axes=[-1])
    asked = graph.add("Greater", count, graph.constant(np.float32(0)))
    return graph.add("Where", graph.spread(asked, -1), instructed, parts[0])


def _of_kinds(
    graph: _Graph, team: TeamPolicy, weights: dict[str, Any], heard: str, features: str
) -> str:
    """Return what the output layers of the kind that is heard add to the logits [N, M]."""
    shape, layers = team.shape, weights["kind_heads"]
    flat = graph.constant(layers["w"].reshape(*layers["w"].shape[:2], -1))
    rest = graph.constant(np.array([shape.hidden, shape.macros], np.int64))
    own = graph.drop(graph.add("MatMul", heard, flat), -2)  # [..., N, H·M]
    lead = graph.add("Slice", graph.add("Shape", own), *map(graph.constant, _ALL_BUT_LAST))
    own = graph.add("Reshape", own, graph.add("Concat", lead, rest, axis=0))
    product = graph.add("MatMul", _part(graph, features, shape.parts - 1, -3), own)
    shift = graph.add("MatMul", heard, graph.constant(layers["b"]))
    return graph.drop(graph.add("Add", product, shift), -2)


def _vectors(team: TeamPolicy) -> np.ndarray:
    """Return what the team hears of silence and of each kind, [1 + C, D]."""
    return np.concatenate([np.zeros((1, team.shape.embedding), np.float32), team.vectors_heard()])


def _part(graph: _Graph, x: str, part: int, axis: int) -> str:
    return graph.add("Gather", x, graph.constant(np.int64(part)), axis=axis)


def _layer(layer: dict[str, Any]) -> dict[str, Any]:
    return {"weight": layer["w"], "bias": layer["b"]}


def _plain(layer: Any) -> Any:
    return {name: np.asarray(array, np.float32) for name, array in layer.items()}


def _value(name: str, kind: int, sizes: dict[str, int], axes: str) -> Any:
    return helper.make_tensor_value_info(name, kind, [sizes[axis] for axis in axes])
