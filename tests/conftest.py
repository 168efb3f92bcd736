"""What tests of several folders share."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from fast_compilation import fast_flags

# XLA reads this when it is first used.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {fast_flags()}".strip()

os.environ["MAVIC_CACHE_MB"] = "0"  # tests compile anew and leave nothing in the user's cache

import jax
from jaxtyping import install_import_hook

# Functions of these packages check their arguments and results against their annotations, shapes included. An int
# passes as a float, as in mypy (PEP 484). This must come before any test imports the package. Left out, because the
# checks would double the suite's time: the insides of the worlds (hundreds of calls in one tick that is not compiled)
# and the language (tens of thousands of calls with one word each).
CHECKED = (
    *("instruct", "rollout", "learn", "experiment", "teams", "training", "evaluation", "session"),
    *("studies", "storage", "reporting", "apps"),
)
ROOT = Path(__file__).parents[1]
MODULES = [path for name in CHECKED for path in ROOT.glob(f"mavic/{name}/**/*.py")]
MODULES += ROOT.glob("mavic/*.py")
MODULES += ROOT.glob("mavic/envs/*.py")
install_import_hook(
    sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in MODULES
        if path.stem not in ("__init__", "__main__")
    ),
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)
# An array of a smaller rank is not broadcast in silence. A scalar still is.
jax.config.update("jax_numpy_rank_promotion", "raise")
# Most programs here are large and run briefly: half the compile time, the same numbers up to rounding.
jax.config.update("jax_disable_most_optimizations", True)
# The workers share what they compile.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
jax.devices()  # settled: a command that would make devices of the cores finds one, as the other tests do

# The files that take longest. They go first, so that no worker is left with one of them at the end.
HEAVY = (
    "session/test_runner.py",
    "learn/test_update.py",
    "golden/test_updates.py",
    "learn/test_acac.py",
    "apps/test_stage.py",
    "apps/test_playground.py",
    "envs/test_overcooked.py",
    "envs/test_box_pushing.py",
)

# Tracing makes millions of small objects, and looking for garbage among them takes an eighth of its time.
gc.set_threshold(200_000, 20, 100)


def pytest_configure(config):
    """Servers of earlier tests may draw random numbers in their threads while hypothesis draws."""
    category = "hypothesis.errors.HypothesisDeprecationWarning"
    config.addinivalue_line("filterwarnings", f"ignore:Do not use the .random. module:{category}")


def pytest_collection_modifyitems(items):
    """Bring the heavy files to the front. The order of a file's own tests stays."""
    place = {str(ROOT / "tests" / name): number for number, name in enumerate(HEAVY)}
    items.sort(key=lambda item: place.get(str(item.path), len(place)))


def pytest_collection_finish():
    """Look for no garbage among what was imported."""
    gc.freeze()
