"""What a sentence does with an act, read from its form: a release, thanks, the past, a question, a postponement.

A head that was fitted to a few phrases hears what a sentence is about better than what it does with it. So for such
heads the probability of prohibitions goes to "end" where a sentence plainly releases, and that of all kinds to "none"
where it plainly asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mavic.language.text import END, NONE, fold

_RELEASES = re.compile(
    r"\b(?:you|we|they|robots|everyone|everybody|all of you) (?:can|may|could|might)\b"
    r"|\bcan be \w+ed\b|\ballowed (?:to|again)\b"
    r"|\bfeel free\b|\b(?:ok|okay|fine|safe|all right) to\b|\bgo ahead\b|\bby all means\b"
    r"|\bno need to (?:avoid|stay|keep)\b"
    r"|\b(?:is|are|has been|have been) (?:\w+ ){0,2}(?:open|free|clear|available|yours|safe"
    r"|repaired|fixed|cleared|reopened|"
    r"unblocked|finished|released|back in (?:use|service))\b|\b(?:works?|working|open|free|allowed|available) again\b"
    r"|\buse \w+ again\b|\bnot (?:off limits|forbidden|closed|blocked) any ?more\b"
    r"|\bno longer (?:off limits|forbidden|closed|"
    r"blocked|broken|reserved|mine|taken)\b|\b(?:don't|do not|needn't|need not"
    r"|no longer) (?:have to |need to )?(?:avoid|stay away|"
    r"stay out|keep away|keep out|keep off)\b|\bstop avoiding\b"
)
_HARMLESS = re.compile(
    r"\b(?:don't|do not|needn't|need not|no longer|no need to) (?:have to |need to )?(?:avoid|stay|keep|leave)\b|"
    r"\bno longer\b|\bany ?more\b|\bno need\b|\bno problem\b|\bdon't (?:have|need) to\b"
    r"|\bnot (?=\w+ any ?more)|\bno longer\b"
    r"|\bstop avoiding\b|\bstay (?:away|out)\b|\bkeep (?:away|out|off)\b|\boff limits\b"
)
_NEGATES = re.compile(
    r"\b(?:don't|do not|not|never|no|nobody|no one|nothing|none|neither|mustn't|can't|cannot"
    r"|shouldn't|isn't|aren't|without|"
    r"only|except|avoid|stop|leave|skip)\b"
)
_ASKS_NOTHING = re.compile(
    r"^(?:\w+,? )?(?:thanks|thank you|cheers|many thanks|well done|good job|good work"
    r"|nice work|nice job|great work|great job) "
    r"(?:for|with|on|at)\b|\bthank you for\b|\bthanks for\b|\bi (?:appreciate|liked|love|like)\b"
    r"|^(?:so |and |but |hey,? |ok,? )?(?:who|what|why|when|where|how|which|whose|is|are|was"
    r"|were|did|does|has|have you|do you|"
    r"do we|are you|may i|can i|should i|isn't|aren't|didn't)\b(?! about (?!the))"
    r"|\b(?:yesterday|last (?:night|week|time|year|month|round|shift|monday)|an? (?:hour"
    r"|minute|week|while) ago|the other day|back then)\b"
    r"|\b(?:you|we|they|he|she|somebody|someone|the \w+) (?:just |already |once "
    r"|really )?(?!need)\w{3,}ed (?:the|all|it|them|a|an|"
    r"room|ward|bed|crane|oven|aisle|that|too|very)\b|\b(?:you|we|they|he|she) (?:went|took"
    r"|did|had|were|was|used to|left|put|brought)\b"
    r"|\b(?:later|tomorrow|tonight|this evening|this afternoon|next (?:week|time|month|round"
    r"|shift|year)|another time|someday)\b"
    r"|\bin (?:a|an|one|two|five|ten|half an|\d+) (?:hours?|minutes?|bit|while|moment)\b"
    r"|\bafter (?:lunch|dinner|the break|i |we |this)"
    r"|\bwhen (?:i|we|everyone|everything|it) |\bonce (?:i|we|this|everything|everyone) |\b(?:can|could) wait\b"
    r"|\b(?:told|asked|said|says|heard that|tells|asks)\b|\b(?:tell|ask) (?:him|her|them|my|your)\b"
)


def plainly_releases(text: str) -> bool:
    """Return whether a sentence says in so many words that something is allowed, free or no longer to be avoided."""
    folded = fold(text)
    return bool(_RELEASES.search(folded)) and not _NEGATES.search(_HARMLESS.sub(" ", folded))


def plainly_asks_nothing(text: str) -> bool:
    """Return whether a sentence thanks, tells, asks a question or postpones, whatever it is about."""
    return bool(_ASKS_NOTHING.search(fold(text)))


def guarded(
    texts: Sequence[str], shares: np.ndarray, names: Sequence[str], prohibitions: Sequence[str]
) -> np.ndarray:
    """Return probabilities that agree with the form of the sentences.

    Args:
        texts: P sentences.
        shares: [P, C] the probability of each name.
        names: "none", the kinds and "end".
        prohibitions: The kinds that forbid something.
    """
    shares = np.array(shares)
    none, end = names.index(NONE), names.index(END)
    kinds = np.array([name not in (NONE, END) for name in names])
    forbids = np.array([name in prohibitions for name in names])
    for row, text in enumerate(texts):
        if plainly_asks_nothing(text):
            _give(shares[row], kinds, none)
        elif plainly_releases(text):
            _give(shares[row], forbids, end)
    return shares


def _give(shares: np.ndarray, of: np.ndarray, to: int) -> None:
    """Give the probability of some names to another one."""
    shares[to] += shares[of].sum()
    shares[of] = 0
