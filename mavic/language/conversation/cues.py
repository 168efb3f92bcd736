"""Signs in a sentence of what it does with an act, whatever the act is: forbid, thank, ask, report, put off."""

from __future__ import annotations

import re

from mavic.language.text import fold

_CUES = {
    name: re.compile(pattern)
    for name, pattern in {
        "<no longer>": r"\b(?:any ?more|any longer|no longer|not any longer)\b",
        "<may>": r"\b(?:you|they|we|everyone|everybody) (?:can|may|could|might)\b(?! not\b)|\ballowed to\b"
        r"|\bfeel free\b"
        r"|\b(?:ok|okay|fine|safe|all right|alright|welcome) (?:to|for)\b|\bgo ahead\b"
        r"|\bgreen light\b|\bby all means\b",
        "<open>": r"\b(?:is|are|been|now|all) (?:\w+ )?(?:free|open|clear|available|yours|safe|ok|okay|fine"
        r"|repaired|fixed|cleared|"
        r"reopened|unblocked|working|finished|done|dry|empty|back|lifted)\b|\bworks?\b",
        "<no need>": r"\b(?:no need|needn't|need not|don't (?:have|need) to|not necessary|isn't necessary"
        r"|unnecessary)\b",
        "<take back>": r"\b(?:never ?mind|forget (?:it|that|about|what|the)|cancel|scratch that|changed my mind"
        r"|carry on|as you were|"
        r"back to (?:work|normal)|resume|take it back)\b",
        "<not>": r"\b(?:don't|do not|not|never|no|nobody|no one|nothing|none|neither|mustn't|can't|cannot"
        r"|shouldn't|may not|without)\b",
        "<stop>": r"\b(?:stop|quit|cease|avoid|skip|refrain|hands off|off limits|forbidden|keep out"
        r"|stay out|away from|clear of|"
        r"keep off|stay off|leave)\b",
        "<past>": r"\b(?:yesterday|last (?:night|week|time|year|month|round|shift)|ago|earlier|was|were|did"
        r"|had|used to|went|took|"
        r"the other day|previously|back then)\b|\b(?:you|we|they|he|she|i|somebody|someone) (?:\w+ly )?\w{3,}ed\b",
        "<thanks>": r"\b(?:thanks|thank|cheers|well done|good job|nice (?:work|job)|great (?:work|job)"
        r"|appreciate|glad|grateful|kudos|"
        r"congratulations|bravo)\b",
        "<question>": r"^(?:so |and |but |hey,? |ok,? )?(?:who|what|why|when|where|how|which|whose|is|are|was"
        r"|were|did|does|has|"
        r"have you|do you|do we|are you|may i|can i|should i|am i|isn't|aren't|didn't)\b",
        "<later>": r"\b(?:later|tomorrow|tonight|next (?:week|time|month|round|shift|year)|this (?:evening|afternoon)|"
        r"in (?:a|an|one|two|five|ten|half|\d+) (?:an )?(?:hour|hours|minute|minutes|bit|while"
        r"|moment)|after (?:lunch|the|i|we|this|dinner)|"
        r"when (?:i|we|everyone|everything)|once (?:i|we|the|this)|on (?:mon|tues|wednes|thurs"
        r"|fri|satur|sun)day|someday|can wait|"
        r"another time|at noon|before you leave|eventually)\b",
        "<report>": r"\b(?:told|asked|said|says|saying|tells|asks|heard)\b|\b(?:tell|ask) (?:him|her|them|my"
        r"|the|your)\b",
        "<ask>": r"\b(?:could|would|can|will) you\b|\bplease\b|\bi(?:'d| would) like you to\b|\bi (?:want"
        r"|need) you to\b|\blet's\b",
    }.items()
}


def cues_of(text: str) -> list[str]:
    """Return the names of the cues in a text."""
    folded = fold(text)
    return [name for name, pattern in _CUES.items() if pattern.search(folded)]
