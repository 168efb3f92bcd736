"""What tests of several folders share."""

from __future__ import annotations

from pathlib import Path

import jax
from jaxtyping import install_import_hook

# Every function of the package checks its arguments and its result against their annotations, shapes included.
# An int passes as a float, as in mypy (PEP 484). This must come before any test imports the package.
TOO_BUSY_TO_CHECK = {  # tens of thousands of calls with a word each: the checks would double the suite's time
    "mavic.language.text",
    "mavic.language.reader.data",
    "mavic.language.reader.phrase_file",
    "mavic.language.reader.spelling",
}
ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("mavic/**/*.py")
}
install_import_hook(
    sorted(name for name in MODULES - TOO_BUSY_TO_CHECK if not name.endswith("__init__")),
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)
# An array of a smaller rank is not broadcast in silence. A scalar still is.
jax.config.update("jax_numpy_rank_promotion", "raise")
# Most programs here are large and run briefly: half the compile time, the same numbers up to rounding.
jax.config.update("jax_disable_most_optimizations", True)
jax.devices()  # settled: a command that would make devices of the cores finds one, as the other tests do
