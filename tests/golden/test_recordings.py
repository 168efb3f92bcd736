"""Every file in the folder of recordings belongs to a world and is tested. The sample in `data` is part of them."""

from __future__ import annotations

import numpy as np

from golden.recordings import PREFIXES, Recording, recordings
from golden.sample import DATA, episodes_folder, load, sample
from golden.updates import ALGORITHMS, RecordedUpdates
from mavic.envs import api

LARGEST = 1_000_000  # bytes of the whole sample


def problems(found: tuple[Recording, ...]) -> list[str]:
    """Return what is wrong with the files of a folder."""
    begins = ", ".join(f"{prefix} ({world})" for prefix, world in PREFIXES.items())
    wrong = [
        f"{recording.path.name}: no world is known by this name; it must begin with {begins}"
        for recording in found
        if recording.world is None
    ]
    missing = set(PREFIXES.values()) - {recording.world for recording in found}
    return wrong + [f"no recording of {world}" for world in sorted(missing)]


def test_every_file_is_a_recording_of_a_known_world():
    folder = episodes_folder()
    assert folder.is_dir(), f"MAVIC_GOLDEN names {folder}, which is not a folder"
    assert problems(recordings(folder)) == []


def test_the_sample_is_made_of_the_recordings():
    """Made anew from the whole set, or from itself where the whole set is not here, it is the same."""
    made = sample()
    assert sorted(made) == sorted(DATA.glob("*/*"))
    for path, arrays in made.items():
        stored = load(path)
        assert stored.keys() == arrays.keys()
        for key, x in arrays.items():
            np.testing.assert_array_equal(stored[key], x, err_msg=f"{path.name} {key}")


def test_the_sample_is_small_and_has_every_world_and_every_algorithm():
    assert sum(path.stat().st_size for path in DATA.glob("*/*")) < LARGEST
    assert problems(recordings(DATA / "episodes")) == []
    updates = [RecordedUpdates(path) for path in DATA.glob("updates/mac_*")]
    assert {recorded.backbone for recorded in updates} == set(ALGORITHMS.values())


def test_every_prefix_stands_for_a_built_in_world():
    assert set(PREFIXES.values()) == set(api.BUILT_IN)


def test_unknown_and_missing_files_are_named(tmp_path):
    for name in ("bp6", "bp10_more", "wtd_b", "chess_1"):
        (tmp_path / f"{name}.npz").touch()
    unknown, missing = problems(recordings(tmp_path))
    assert unknown.startswith("chess_1.npz: no world is known by this name; it must begin with bp")
    assert missing == "no recording of overcooked"


def test_rows_are_padded_to_whole_episodes(tmp_path):
    path = tmp_path / "bp4.npz"
    np.savez(path, act=np.array([[1], [2], [3]]), ep_start=np.array([0, 1]), ep_len=[1, 2])
    recording = Recording(path)
    assert recording.by_episode("act").tolist() == [[[1], [0]], [[2], [3]]]
    assert recording.alive.tolist() == [[True, False], [True, True]]
