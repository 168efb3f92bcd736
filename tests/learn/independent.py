"""The learner's arithmetic once more, in numpy and float64: slow, plain, and without a line of the package.

Gradients are central differences of the losses, for all parameters at once: every parameter array has a leading axis
`B` of perturbed copies. Rows [K, L] are dictionaries of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 1e-6  # of the central differences


def float64(tree: Any) -> Any:
    """Return a pytree of dictionaries in float64."""
    if isinstance(tree, dict):
        return {name: float64(branch) for name, branch in tree.items()}
    return np.asarray(tree, np.float64)


def leaves(tree: Any, path: str = "") -> dict[str, np.ndarray]:
    """Return all arrays by their paths."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {k: v for name in tree for k, v in leaves(tree[name], f"{path}/{name}").items()}


def _set(tree: Any, path: str, value: np.ndarray) -> None:
    *names, last = path.strip("/").split("/")
    for name in names:
        tree = tree[name]
    tree[last] = value


def _copy(tree: Any) -> Any:
    return {k: _copy(v) for k, v in tree.items()} if isinstance(tree, dict) else tree.copy()


def stacked(params: Any, copies: int = 1) -> Any:
    """Return parameters with an axis of copies."""
    if isinstance(params, dict):
        return {name: stacked(branch, copies) for name, branch in params.items()}
    return np.repeat(params[None], copies, 0)


def gradient(loss: Callable[[Any], np.ndarray], params: Any) -> dict[str, np.ndarray]:
    """Return the gradient of `loss(copies) -> [B]` by central differences, by path."""
    found = {}
    for path, leaf in leaves(params).items():
        copies = stacked(params, 2 * leaf.size)
        moved = np.repeat(leaf[None], 2 * leaf.size, 0).reshape(2, leaf.size, leaf.size)
        index = np.arange(leaf.size)
        moved[0, index, index] += STEP
        moved[1, index, index] -= STEP
        _set(copies, path, moved.reshape(2 * leaf.size, *leaf.shape))
        up, down = loss(copies).reshape(2, leaf.size)
        found[path] = ((up - down) / (2 * STEP)).reshape(leaf.shape)
    return found


class Adam:
    """Adam from empty moments, with the norm of the gradient clipped first."""

    def __init__(self, lr: float, b2: float, max_norm: float = np.inf) -> None:
        self.lr, self.b2, self.max_norm, self.steps = lr, b2, max_norm, 0
        self.first: dict[str, np.ndarray] = {}
        self.second: dict[str, np.ndarray] = {}

    def step(self, params: Any, grads: dict[str, np.ndarray]) -> Any:
        """Return the parameters after one step."""
        self.steps += 1
        norm = np.sqrt(sum((g**2).sum() for g in grads.values()))
        after = _copy(params)
        for path, leaf in leaves(params).items():
            g = grads[path] * min(1.0, self.max_norm / norm)
            m = self.first[path] = 0.9 * self.first.get(path, 0.0) + 0.1 * g
            v = self.second[path] = self.b2 * self.second.get(path, 0.0) + (1 - self.b2) * g**2
            m_hat, v_hat = m / (1 - 0.9**self.steps), v / (1 - self.b2**self.steps)
            _set(after, path, leaf - self.lr * m_hat / (np.sqrt(v_hat) + 1e-8))
        return after


# Networks. Parameters have the axes [B, parts, ...].


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, x, 0.01 * x)


def dense(layer: dict, x: np.ndarray) -> np.ndarray:
    return x @ layer["w"] + layer["b"][..., None, :]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru_step(gru: dict, hidden: np.ndarray, memory: np.ndarray) -> np.ndarray:
    r, z, n = np.split(hidden @ gru["wi"] + gru["bi"][..., None, :], 3, -1)
    rh, zh, nh = np.split(memory @ gru["wh"] + gru["bh"][..., None, :], 3, -1)
    new = np.tanh(n + sigmoid(r + rh) * nh)
    z = sigmoid(z + zh)
    return (1 - z) * new + z * memory


def layer_norm(norm: dict, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (1 + norm["gain"])[..., None, :] * x + norm["b"][..., None, :]


def _part(params: Any, part: int) -> Any:
    if isinstance(params, dict):
        return {name: _part(branch, part) for name, branch in params.items()}
    return params[:, part]


def inputs(params: dict, rows: dict, k: int, vectors: np.ndarray, hears: bool, key: str) -> tuple:
    """Return what enters the first layer at row k: [B, W, I]."""
    vectors = vectors * hears
    phrases = rows["phrases"][k]
    mates = phrases[:, 1:]
    parts = [np.broadcast_to(rows[key][k], (params["first"]["w"].shape[0], *rows[key][k].shape))]
    heard = vectors[phrases] @ params["project"][next(iter(params["project"]))][:, None]
    parts.append(heard[:, :, 0])
    if "team" in params["project"]:
        parts.append((vectors[mates] @ params["project"]["team"][:, None]).mean(-2))
    else:
        bit = ((mates > 0).any(-1) * hears).astype(float)[None, :, None]
        parts.append(np.broadcast_to(bit, (len(parts[0]), *bit.shape[1:])))
    return np.concatenate(parts, -1)


def unroll(params: dict, rows: dict, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the heads [B, P, K, W, out] of all rows, and those after each row under its own phrase."""
    parts = params["first"]["w"].shape[1]
    params, kinds = {k: v for k, v in params.items() if k != "kind_heads"}, params.get("kind_heads")
    heads, afters = [], []
    for part in range(parts):
        own = _part(params, part)
        size = own["gru"]["wh"].shape[-2]
        memory = np.zeros((own["first"]["w"].shape[0], rows["first"].shape[1], size))
        here, later = [], []

        def step(memory, k, key, own=own, hears=part == parts - 1):
            x = inputs(own, rows, k, vectors, hears, key)
            hidden = leaky(dense(own["second"], leaky(dense(own["first"], x))))
            memory = gru_step(own["gru"], hidden, memory)
            features = leaky(dense(own["third"], memory))
            if "norm" in own:
                features = layer_norm(own["norm"], features)
            head = dense(own["head"], features)
            if kinds is not None and hears:
                said = (
                    rows["phrases"][k].max(-1)
                    if "team" in own["project"]
                    else rows["phrases"][k][:, 0]
                )
                for kind in range(kinds["w"].shape[1]):
                    layer = {name: leaf[:, kind] for name, leaf in kinds.items()}
                    head = head + vectors[said][:, kind, None] * dense(layer, features)
            return memory, head

        for k in range(rows["first"].shape[0]):
            memory = np.where(rows["first"][k][None, :, None], 0.0, memory)
            memory, head = step(memory, k, "observation")
            here.append(head)
            later.append(step(memory, k, "next_observation")[1])
        heads.append(np.stack(here, 1))
        afters.append(np.stack(later, 1))
    return np.stack(heads, 1), np.stack(afters, 1)


def of_context(heads: np.ndarray, instructed: np.ndarray) -> np.ndarray:
    """[B, P, K, W, out] → [B, K, W, out], by the part that computes each context."""
    if heads.shape[1] == 1:
        return heads[:, 0]
    return np.where(instructed[None, ..., None], heads[:, 1], heads[:, 0])


class Statistics:
    """The statistics of values, of the task and of instructions that replace it: PopArt's, or the largest so far."""

    def __init__(self, mean, square, weight) -> None:
        self.mean, self.square, self.weight = (float64(x) for x in (mean, square, weight))

    @property
    def centre(self):
        return self.mean / self.weight

    @property
    def spread(self):
        least = 0.0 if self.grows else 1e-2
        return np.sqrt(np.maximum(self.square / self.weight - self.centre**2, least))

    @property
    def grows(self):
        return self.weight[0] == 1

    def after(self, target, context, valid, step) -> Statistics:
        new = [x.copy() for x in (self.mean, self.square, self.weight)]
        for i in range(2):
            of = target[valid & ((context == 2) == bool(i))]
            if len(of) and self.grows:
                new[1][i] = max(new[1][i], (of**2).mean())
            elif len(of) and step > 0:
                for x, y in zip(new, (of.mean(), (of**2).mean(), 1.0), strict=True):
                    x[i] += step * (y - x[i])
        return Statistics(*new)

    def value(self, heads, context):
        raw = of_context(heads, context > 0)
        i = (context == 2).astype(int)
        return np.where(i == 1, raw[..., 1], raw[..., 0]) * self.spread[i] + self.centre[i]

    def moved(self, critic, new: Statistics):
        """The critic whose values are the same under new statistics."""
        critic = _copy(critic)
        share = self.spread / new.spread
        critic["head"]["w"] = critic["head"]["w"] * share
        critic["head"]["b"] = (
            critic["head"]["b"] * self.spread + self.centre - new.centre
        ) / new.spread
        for name, leaf in critic.get("kind_heads", {}).items():
            critic["kind_heads"][name] = leaf * share
        return critic


# Targets: written as sums over the rows of an episode, not as a recursion.


def targets(rows, value, after, cut, n_steps, td_lambda):
    """Return G [K, L]. `after` is V(h', c). A change of instruction ends the sum if `cut`."""
    found = np.zeros_like(value)
    length, lanes = value.shape
    for w in range(lanes):
        for k in range(length):
            if not rows["valid"][k, w]:
                continue

            def back(k, left, w=w):
                r, d = rows["reward"][k, w], rows["discount"][k, w]
                same = value[k, w] if rows["bootstraps_from_self"][k, w] else after[k, w]
                if d == 0:
                    return r
                if rows["last"][k, w] or (cut and rows["switched"][k, w]):
                    return r + d * same
                if left == 1:
                    return r + d * value[k + 1, w]
                onward = back(k + 1, left - 1)
                return r + d * ((1 - td_lambda) * value[k + 1, w] + td_lambda * onward)

            found[k, w] = back(k, n_steps)
    return found


def row_weights(kind, valid, balance):
    """Return the weight of each row: equal, or equal by kind."""
    if not balance:
        return valid / valid.sum()
    weight, kinds = np.zeros(kind.shape), np.unique(kind[valid])
    for one in kinds:
        of = valid & (kind == one)
        weight[of] = 1 / of.sum() / len(kinds)
    return weight


def critic_loss(critic, rows, vectors, stats, target, hysteresis, weight):
    """Return [B]: squared errors in units of the spread; those that call for a lower value weigh less."""
    context = rows["context"]
    value = stats.value(unroll(critic, rows, vectors)[0], context)
    error = (target - value) / stats.spread[(context == 2).astype(int)]
    return (weight * np.where(error < 0, hysteresis, 1.0) * error**2).sum((1, 2))


def shaped(advantage, rows, center, divide, hysteresis, scale):
    """Return the advantages that weigh the actor's terms. The last four are [K, L]."""
    found = np.zeros_like(advantage)
    for kind in np.unique(rows["kind"][rows["valid"]]):
        of = rows["valid"] & (rows["kind"] == kind)
        own = advantage[of] - advantage[of].mean() * center[of]
        size = np.sqrt((own**2).mean()) + 1e-6
        own = np.where(divide[of] > 0, own / size ** divide[of], own)
        found[of] = own * np.where(own < 0, hysteresis[of], 1.0) * scale[of]
    return found


def policy(actor, rows, vectors, epsilon, frozen=None):
    """Return log-probabilities of the macros taken [B, K, W], entropies, and logits [B, K, W, M].

    `frozen` is the heads of the uninstructed part to which a residual actor adds.
    """
    heads = unroll(actor, rows, vectors)[0]
    logits = of_context(heads, rows["kind"] > 0)
    if frozen is not None:
        logits = logits + np.where((rows["kind"] > 0)[None, ..., None], frozen, 0.0)
    available = rows["available"]
    raised = np.exp(logits) * available
    soft = raised / raised.sum(-1, keepdims=True)
    mixed = (1 - epsilon[..., None]) * soft + epsilon[..., None] * available / available.sum(
        -1, keepdims=True
    )
    taken = np.take_along_axis(mixed, rows["macro"][None, ..., None], -1)[..., 0]
    safe = np.where(soft > 0, soft, 1.0)
    return np.log(taken), -(soft * np.log(safe)).sum(-1), logits


def log_allowed(logits, rows):
    """Return the log-probability of all allowed macros, [B, K, W]."""
    raised = np.exp(logits)
    allowed = (raised * (rows["available"] & ~rows["forbidden"])).sum(-1)
    return np.log(allowed / (raised * (rows["available"] | rows["forbidden"])).sum(-1))
