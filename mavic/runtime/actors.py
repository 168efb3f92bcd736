"""The actors of an exported team: what each agent would choose, with numpy and onnxruntime.

The numbers are those of `mavic.learn.act.decide`. An actor runs three times over the true history: it hears the first
instruction alone, the second alone, and silence.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime

REFUSED = np.float32(-1e9)  # the logit of a macro that is not available


class Heard(NamedTuple):
    """What each agent hears of one instruction."""

    vectors: np.ndarray  # [N, D] float32; zeros for silence
    told: np.ndarray  # [N] bool


class Actors:
    """The networks. Their memory is in the arrays that the caller holds."""

    def __init__(self, path: Path) -> None:
        """Load an ONNX file.

        Args:
            path: the file.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.sizes = {one.name: tuple(one.shape) for one in self._session.get_inputs()}

    def start(self) -> np.ndarray:
        """Return the memory [3, N, R, H] at the start of an episode."""
        return np.zeros(self.sizes["memory"], np.float32)

    def silence(self) -> Heard:
        """Return what agents hear if nothing is said."""
        return Heard(
            np.zeros(self.sizes["heard"][1:], np.float32), np.zeros(self.sizes["told"][1:], bool)
        )

    def logits(
        self,
        memory: np.ndarray,
        observation: np.ndarray,
        last_macro: np.ndarray,
        first: Heard,
        second: Heard,
        idle: np.ndarray,
        available: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the logits [N, M] and the memory after the decision.

        Args:
            memory: [3, N, R, H].
            observation: [N, O].
            last_macro: [N] the macro that ran before; -1 for none.
            first: the first instruction.
            second: the second instruction.
            idle: bool [N], who decides. The memory of the others stays.
            available: bool [N, M].
        """
        heard = (first, second, self.silence())
        inputs = {
            "observation": np.asarray(observation, np.float32),
            "last_macro": np.asarray(last_macro, np.int64),
            "heard": np.stack([one.vectors for one in heard]),
            "told": np.stack([one.told for one in heard]),
            "idle": idle,
            "memory": memory,
        }
        (one, other, silent), after = self._session.run(["logits", "next_memory"], inputs)
        alone = ~first.told & (second.told | ~first.told.any())
        logits = np.where(alone[:, None], other, one)
        both = (first.told & second.told)[:, None]
        if both.any():
            logits = np.where(both, _both_kept(one, other, silent, available), logits)
        return logits, after


def _both_kept(
    one: np.ndarray, other: np.ndarray, silent: np.ndarray, available: np.ndarray
) -> np.ndarray:
    """Return the logits under two instructions: of each macro the one that is farther from silence."""
    first, second, neither = (_log_softmax(x, available) for x in (one, other, silent))
    return np.where(np.abs(first - neither) >= np.abs(second - neither), first, second)


def _log_softmax(logits: np.ndarray, available: np.ndarray) -> np.ndarray:
    masked = np.where(available, logits, REFUSED)
    shifted = masked - masked.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def probabilities(logits: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Return the probability of each macro [..., M].

    Args:
        logits: [..., M].
        available: bool [..., M]; the others have probability 0.
    """
    return np.exp(_log_softmax(logits, available)) * available


def choose(shares: np.ndarray, draw: float, greedy: bool = False) -> int:
    """Return the macro of one agent.

    Args:
        shares: [M] the probability of each macro.
        draw: a number from 0 to 1.
        greedy: take the likeliest.
    """
    if greedy:
        return int(shares.argmax())
    total = np.cumsum(shares)
    return int((total <= np.float32(min(draw, 1 - 1e-6)) * total[-1]).sum())
