"""What tests of several folders share."""

from __future__ import annotations

import os
from pathlib import Path

# The older code generator compiles three times as fast. XLA reads this when it is first used.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"

os.environ["MAVIC_CACHE_MB"] = "0"  # tests compile anew and leave nothing in the user's cache

import jax
import pytest
from jaxtyping import install_import_hook

# Functions of these packages check their arguments and results against their annotations, shapes included. An int
# passes as a float, as in mypy (PEP 484). This must come before any test imports the package. Left out, because the
# checks would double the suite's time: the insides of the worlds (hundreds of calls in one tick that is not compiled)
# and the language (tens of thousands of calls with one word each).
CHECKED = ("instruct", "rollout", "learn", "experiments", "reporting", "apps")
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

# Tests that `make test` leaves to `make test-long`, which CI runs too: further cases of what a fast test checks once,
# and proofs that take long. A name is the beginning of a test's id in its file.
LONG = {
    "test_same_numbers.py": (
        "test_a_short_training_gives_the_numbers_that_it_gave_before[warehouse",
        "test_a_short_training_gives_the_numbers_that_it_gave_before[overcooked",
    ),
    "test_box_pushing_optimum.py": (
        "test_obeying_is_best_under_replace[stay",
        "test_obeying_is_best_under_replace[go",
        "test_obeying_is_best_in_every_state_under_replace[stay",
        "test_obeying_is_best_in_every_state_under_replace[go",
        "test_disobeying_pays_in_nearly_every_state_under_add",
        "test_the_shipped_plan_is_the_optimum_of_the_smallest_grid",
    ),
    "test_words.py": ("test_the_report_shows_every_share",),
    "test_read.py": (
        "test_development_sets_have_no_target",
        "test_the_head_",
        "test_blind_sentences_reach_the_targets[minilm-l3",
    ),
    "test_collection.py": ("test_our_batches_have_the_recorded_statistics",),
    "test_networks.py": (
        "test_replay_decides_as_the_rollout_did[shared",
        "test_replay_decides_as_the_rollout_did[protected",
    ),
    "test_update.py": (
        "test_gradients_in_blocks_equal_plain_back_propagation[shared",
        "test_contexts_do_not_touch_each_others_parameters[protected",
        "test_a_users_network_learns_as_the_fast_one_does",
    ),
    "test_backbone_policies.py": (
        "test_an_episode_on_a_stage_is_the_rollouts_episode",
        "test_the_learner_replays_the_decisions[mac-cac",
    ),
    "test_acac.py": ("test_the_critic_sees_every_agents", "test_a_macros_rows_of_the_team"),
    "test_cli.py": ("test_the_same_command_goes_on_where_it_was",),
    "test_sampled_targets.py": ("test_a_table_learnt_from_our_targets",),
    "test_unseen_phrases.py": ("test_every_hearing_method_is_evaluated",),
    "test_faults.py": ("test_",),
    "test_engines.py": ("test_",),
    "test_study_pages.py": ("test_a_page_is_made_from_records_alone_with_the_same_bytes[atlas",),
    "test_devices.py": ("test_",),
    "test_overcooked.py": ("test_replays_every_episode[oc_A_", "test_replays_every_episode[oc_B_"),
}


def pytest_collection_modifyitems(items):
    """Mark the long tests."""
    for item in items:
        if item.name.startswith(LONG.get(item.path.name, ("-",))):
            item.add_marker(pytest.mark.long)
