"""What people can speak of in a world: its agents, its things, and which kinds of instruction are about a thing.

Agents and things have one name each and other words that people use. Where an agent stands is known during an episode,
so "the cook on the left" is found by its place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mavic.instruct.spec import InstructionFile, Kind
from mavic.language.reader.spelling import REPLACEMENTS, in_vocabulary

SIDES = ("left", "right")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ORDINALS = {1: "first|1st", 2: "second|2nd", 3: "third|3rd"}
WORD = re.compile(r"[a-z']+")
GRAMMAR = (
    "again also either neither other both just only wait first then after afterwards next never mind forget the will "
    "not nevermind carry continue resume actually sorry meant instead should must cannot don't dont stop everything "
    "still broken dirty fine free matter important urgent"
)
SHORTEST_MISTYPED = 3  # letters; a shorter word is left as it is
LETTERS_FOR_TWO_ERRORS = 6


@dataclass(frozen=True, kw_only=True)
class About:
    """The things that a kind forbids or wants."""

    things: frozenset[str]
    wants: bool


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A place in a text that names things."""

    start: int
    end: int
    things: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cast:
    """The agents and things of a world, in people's words."""

    agents: tuple[str, ...]
    """Their names, in their order."""
    also_called: tuple[tuple[str, ...], ...] = ()
    """Other names of each agent."""
    things: tuple[str, ...] = ()
    """Their names: "left oven", "plate 1", "tool 0"."""
    other_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other words for a thing, or for the noun in its name."""
    about: Mapping[str, About] = field(default_factory=dict)
    """By kind; a kind that is about an act alone is missing."""
    commands: frozenset[str] = frozenset()
    """The kinds that say what to do. The others say what not to do."""
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The training phrases of each kind."""
    places: tuple[tuple[float, float], ...] = ()
    """Where each agent stands: from the left and from the top."""

    @classmethod
    def of(
        cls,
        file: InstructionFile,
        agents: Sequence[str],
        *,
        also_called: Sequence[Sequence[str]] = (),
        macro_things: Mapping[str, str] | None = None,
        other_words: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Cast:
        """Return the cast of a world.

        Args:
            file: Its kinds.
            agents: What people call the agents.
            also_called: Other names of each agent.
            macro_things: The thing that a macro is about.
            other_words: Other words for things and nouns.
        """
        things = macro_things or {}
        about = {kind.name: found for kind in file.kinds if (found := _about(kind, things))}
        named = dict.fromkeys(thing for one in about.values() for thing in sorted(one.things))
        return cls(
            agents=tuple(agents),
            also_called=tuple(map(tuple, also_called)) or ((),) * len(agents),
            things=tuple(named),
            other_words=other_words or {},
            about=about,
            commands=frozenset(k.name for k in file.kinds if k.allow or k.resolved_by),
            phrases={kind.name: kind.train for kind in file.kinds},
        )

    def at(self, places: Iterable[tuple[float, float]]) -> Cast:
        """Return the cast with agents in other places."""
        return dataclasses.replace(self, places=tuple(places))

    def twin(self, thing: str) -> str | None:
        """Return the other thing with the same noun, as the right oven for the left one; None if there is no one."""
        alike = [other for other in self.things if _noun(other) == _noun(thing) and other != thing]
        return alike[0] if len(alike) == 1 else None

    def alike(self, thing: str) -> tuple[str, ...]:
        """Return the things with the same noun, this one included."""
        return tuple(other for other in self.things if _noun(other) == _noun(thing))

    def sorts(self, kind: str) -> frozenset[str]:
        """Return what sorts of things a kind is about: "oven" for the left oven."""
        things = self.about[kind].things if kind in self.about else ()
        return frozenset(_noun(thing) or thing for thing in things)

    def phrase(self, kind: str) -> str:
        """Return a training phrase of a kind, one that calls its things by their names if there is one."""
        named = [phrase for phrase in self.phrases[kind] if self._names_all(kind, phrase)]
        return (named or self.phrases[kind])[0]

    def _names_all(self, kind: str, phrase: str) -> bool:
        things = self.about[kind].things if kind in self.about else ()
        return all({*thing.split()} <= {*phrase.split()} for thing in things)

    def kinds_about(self, things: Iterable[str]) -> tuple[str, ...]:
        """Return the kinds that are about one of these things; those about nothing else come first."""
        wanted = set(things)
        found = [kind for kind, about in self.about.items() if about.things & wanted]
        return tuple(sorted(found, key=lambda kind: len(self.about[kind].things - wanted)))

    def counterpart(self, kind: str, things: Iterable[str]) -> str | None:
        """Return the kind that asks of other things what `kind` asks of its own; None if there is no such kind."""
        if kind not in self.about:
            return None
        wanted, wants = frozenset(things), self.about[kind].wants
        for other, about in self.about.items():
            if about.things == wanted and about.wants == wants:
                return other
        return None

    def spoken_of(self, text: str) -> set[str]:
        """Return the things that a text may be about; "the oven" may be either."""
        found = {thing for mention in self.mentions(text) for thing in mention.things}
        if not found:
            for noun in filter(None, map(_noun, self.things)):
                if re.search(rf"\b(?:{'|'.join(self._nouns(noun))})\b", text):
                    found |= {thing for thing in self.things if _noun(thing) == noun}
        return found

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """Return where a text names things, from left to right."""
        found: list[Mention] = []
        for things, pattern in self._patterns:
            for match in pattern.finditer(text):
                if not any(m.start < match.end() and match.start() < m.end for m in found):
                    found.append(Mention(start=match.start(), end=match.end(), things=things))
        return tuple(sorted(found, key=lambda m: m.start))

    def plain(self, text: str) -> str:
        """Return the text with things called by their names unless the phrases know the words: a hammer is "tool 0"."""
        for mention in reversed(self.mentions(text)):
            said = text[mention.start : mention.end]
            numbered = len(mention.things) == 1 and bool(_noun(mention.things[0]))
            if numbered and f" {said} " not in self._known:
                before = re.sub(r"\b(?:an?|the|some) $", "", text[: mention.start])
                (thing,) = mention.things
                the = "the " if thing.startswith(SIDES) else ""
                text = f"{before}{the}{thing}{text[mention.end :]}"
        return text

    def corrected(self, text: str) -> str:
        """Return the text with apostrophes, and with typing errors corrected to words of this world, where no English
        word is meant."""
        return WORD.sub(lambda match: self._nearest(match[0]), text)

    def _nearest(self, word: str) -> str:
        if word in REPLACEMENTS:
            return REPLACEMENTS[word]
        stem = re.sub(r"(?:ed|ing|s)$", "", word)  # "fetched" is no error for "fetch"
        known = "'" in word or {word, stem} & self.vocabulary or in_vocabulary(word)
        if len(word) < SHORTEST_MISTYPED or known:
            return word
        most = 2 if len(word) >= LETTERS_FOR_TWO_ERRORS else 1
        by_distance: dict[int, list[str]] = {}
        for other in self.vocabulary:
            if abs(len(other) - len(word)) <= most and other[0] == word[0]:
                by_distance.setdefault(typing_errors(word, other), []).append(other)
        best = min(by_distance, default=most + 1)
        return by_distance[best][0] if best <= most and len(by_distance[best]) == 1 else word

    @cached_property
    def _known(self) -> str:
        """All training phrases in one text."""
        return " " + " ".join(text for phrases in self.phrases.values() for text in phrases) + " "

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of this world: those of its phrases, and the names of agents and things."""
        texts = [text for phrases in self.phrases.values() for text in phrases]
        texts += [*self.things, *self.agents, *(n for names in self.also_called for n in names)]
        texts += [word for words in self.other_words.values() for word in words]
        return frozenset(word for text in (GRAMMAR, *texts) for word in WORD.findall(text.lower()))

    @cached_property
    def _patterns(self) -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
        """Patterns of all ways to name things. Those for several things come first, then the longest names."""
        rows: list[tuple[tuple[str, ...], str]] = []
        for noun in dict.fromkeys(map(_noun, self.things)):
            group = tuple(thing for thing in self.things if _noun(thing) == noun)
            if len(group) > 1 and noun:
                nouns = self._nouns(noun)
                plural = "|".join(rf"{one}(?:e?s)" for one in nouns)
                single = "|".join(nouns)
                rows.append(
                    (
                        group,
                        rf"(?:both|all|any|either|neither)(?: of)?(?: the)?(?: two)? (?:{plural}|{single})",
                    )
                )
                rows.append(
                    (
                        group,
                        rf"(?:left|right) (?:and|or|nor) (?:the )?(?:left|right) (?:{plural}|{single})",
                    )
                )
                rows.append((group, rf"(?:two )?(?:{plural})"))
        single_things = sorted(self.things, key=len, reverse=True)
        rows += [((thing,), way) for thing in single_things for way in self._ways(thing)]
        return tuple((things, re.compile(rf"\b(?:{way})\b")) for things, way in rows)

    def _nouns(self, noun: str) -> list[str]:
        others = [*self.other_words.get(noun, ()), noun]
        return [re.escape(one) for one in sorted(others, key=len, reverse=True)]

    def _ways(self, thing: str) -> list[str]:
        """Return patterns of the ways to name one thing."""
        # "hammer the nail" speaks of no hammer
        ways = [
            _spaced(other) + r"(?! (?:the|an?|it|that|this)\b)"
            for other in self.other_words.get(thing, ())
        ]
        noun = _noun(thing)
        nouns = "|".join(self._nouns(noun)) if noun else ""
        first, _, last = thing.partition(" ")
        number = thing.rsplit(" ", 1)[-1]
        if first in SIDES and last:
            side = rf"{first}(?:[- ]?hand)?(?: side)?(?:most)?"
            ways += [
                rf"{side} (?:{nouns})",
                rf"(?<!big )(?<!large )(?:{nouns}) (?:(?:that|which) is |that's |over )?(?:on|at|to|in) "
                rf"(?:the |your |my )?{first}(?: side)?",
                rf"(?:{nouns}) {first}",
            ]
        elif number.isdigit():
            said = f"{number}|{NUMBERS[int(number)]}" if int(number) < len(NUMBERS) else number
            ways.append(rf"(?:{nouns}) ?(?:number |no\.? |#)?(?:{said})")
            lowest = min(int(t.rsplit(" ", 1)[-1]) for t in self.alike(thing))
            if lowest == 1 and int(number) in ORDINALS:
                ways.append(rf"(?:{ORDINALS[int(number)]}) (?:{nouns})")
        else:
            ways.append(_spaced(thing))
        return ways


def _about(kind: Kind, things: Mapping[str, str]) -> About | None:
    """Return the things that a kind is about; None if it lists a macro that is about no thing."""
    for event, sign in kind.resolved_by.items():
        for thing in set(things.values()):
            if sign > 0 and event.replace("-", " ").replace("_", " ").endswith(thing):
                return About(things=frozenset({thing}), wants=True)
    listed = kind.allow if kind.allow is not None else kind.forbid
    if listed is None or kind.when is not None or kind.unless is not None:
        return None
    names = {
        n for part in (listed.values() if isinstance(listed, dict) else [listed]) for n in part
    }
    if not names <= things.keys():
        return None
    return About(things=frozenset(things[name] for name in names), wants=kind.allow is not None)


def _noun(thing: str) -> str:
    """Return the noun of a name that has a side or a number: "oven", "plate"; empty for other names."""
    first, _, last = thing.partition(" ")
    if first in SIDES and last:
        return last
    before, _, number = thing.rpartition(" ")
    return before if number.isdigit() else ""


def _spaced(name: str) -> str:
    return re.escape(name).replace(r"\ ", r"[ -]?")


def typing_errors(word: str, other: str) -> int:
    """Return how many letters must be added, removed, replaced or swapped with their neighbour."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            costs = [above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted)]
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                costs.append(before[j - 2] + 1)
            row.append(min(costs))
        before, above = above, row
    return above[-1]
