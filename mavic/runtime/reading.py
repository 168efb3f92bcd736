"""A sentence to a kind, to the end of what holds, or to unsure: the exported reader, or one behind an address."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from mavic.language.encoder import EncoderError, onnx_states, pool
from mavic.language.reader import own_head
from mavic.language.reader.endpoint import UNSURE, Endpoint
from mavic.language.reader.model import Head, in_order
from mavic.language.reader.spelling import correct, why_no_sentence
from mavic.language.text import END, NONE, fold
from mavic.runtime.contract import Contract
from mavic.runtime.folder import ENCODER, HEAD, VOCABULARY, Export, ExportError

CACHED_SENTENCES = 256


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a sentence was understood as."""

    kind: str  # a kind, "end" or "none"; the most probable one even when unsure
    unsure: bool
    shares: np.ndarray  # [C - 1] the probability of each kind
    vector: np.ndarray | None = None  # the sentence's vector, where the team hears vectors
    note: str = ""  # why it is unsure, if a reason is known


class Reads(Protocol):
    """Anything that reads sentences."""

    def read(self, text: str) -> Reading:
        """Return what a sentence asks for."""


class OwnReader:
    """The reader that was exported with the team. The encoder is loaded when a sentence first needs it."""

    def __init__(self, export: Export, contract: Contract) -> None:
        """Describe the reader.

        Args:
            export: the team's folder.
            contract: the kinds.
        """
        self._export, self._names = export, (*contract.kinds, END)
        self._vectors = export.facts["hear"] == "vectors"
        self._known = {
            fold(text): contract.kind(kind)
            for kind, texts in export.facts["phrases"].items()
            for text in texts
        }
        self.read = lru_cache(CACHED_SENTENCES)(self._read)

    def _read(self, text: str) -> Reading:
        kinds = len(self._names) - 2
        if (known := self._known.get(fold(text))) is not None:
            shares = np.zeros(kinds, np.float32)
            shares[known - 1] = 1
            return Reading(
                kind=self._names[known], unsure=False, shares=shares, vector=self._vector(text)
            )
        if note := why_no_sentence(text):
            return Reading(kind=NONE, unsure=True, shares=np.zeros(kinds, np.float32), note=note)
        corrected = correct(text, self._head.words)
        states = self._states([corrected])
        found = self._head.probabilities([corrected], states)
        found = in_order(found, self._head.names, self._names)
        best = 1 + int(found[0, 1:].argmax())
        return Reading(
            kind=self._names[best],
            unsure=bool(found[0, best] < self._head.threshold),
            shares=found[0, 1:-1],
            vector=self._vector(text),
        )

    def _vector(self, text: str) -> np.ndarray | None:
        return pool(self._states([text])[0]) if self._vectors else None

    @cached_property
    def _head(self) -> Head | own_head.OwnHead:
        path = self._export.file(HEAD)
        if path is None:
            raise ExportError(
                "this team was exported without its reader: say a kind, or a phrase that it was trained with; "
                "or export it without --without-reader"
            )
        return own_head.load(path)

    @cached_property
    def _states(self) -> Any:
        encoder, vocabulary = self._export.file(ENCODER), self._export.file(VOCABULARY)
        if encoder is None or vocabulary is None:
            raise ExportError("this team was exported without its encoder: say a kind")
        try:
            return onnx_states(encoder, vocabulary)
        except EncoderError as error:
            raise ExportError(str(error)) from None


class RemoteReader:
    """A reader behind an OpenAI-compatible address."""

    def __init__(self, endpoint: Endpoint, contract: Contract) -> None:
        """Wrap an endpoint.

        Args:
            endpoint: the address and what it is told.
            contract: the kinds.
        """
        self._endpoint, self._kinds = endpoint, contract.kinds

    def read(self, text: str) -> Reading:
        """Return what a sentence asks for. What cannot be understood is unsure."""
        kind, why = self._endpoint.explain(text)
        shares = np.zeros(len(self._kinds) - 1, np.float32)
        if kind in self._kinds[1:]:
            shares[self._kinds.index(kind) - 1] = 1
        unsure = kind in (UNSURE, NONE)
        return Reading(kind=NONE if unsure else kind, unsure=unsure, shares=shares, note=why)


def reader_of(
    export: Export, contract: Contract, reader: str | Endpoint | Reads | None = None
) -> Reads:
    """Return a team's reader.

    Args:
        export: the team's folder.
        contract: the kinds.
        reader: None for the exported one, an address such as "http://127.0.0.1:8000/v1", an `Endpoint`, or an object
            with a method `read`.
    """
    if reader is None:
        return OwnReader(export, contract)
    if isinstance(reader, str):
        phrases = export.facts["phrases"]
        reader = Endpoint(
            reader, {kind: (phrases.get(kind) or [kind])[0] for kind in contract.kinds[1:]}
        )
    if isinstance(reader, Endpoint):
        return RemoteReader(reader, contract)
    if not callable(getattr(reader, "read", None)):
        raise ValueError(
            f"reader must be an address, an Endpoint or an object with read, not {type(reader).__name__}"
        )
    return reader
