"""A reader behind an address: it names a kind, or the team is unsure."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from model_server import serving, slow

from mavic.language.reader.endpoint import Endpoint
from mavic.runtime.team import open_team

KINDS = {"stay": "stay where you are", "push": "push the box"}
TEAM = Path(__file__).parent / "data" / "overcooked"


@pytest.mark.parametrize("answer", ["stay", "push", "end", "none", "unsure", ' "stay".\n'])
def test_an_answer_of_the_list_is_taken(answer):
    with serving(lambda body: answer) as (url, asked):
        assert Endpoint(url, KINDS).read("hold it") == answer.strip().strip('".')
    assert asked[0]["path"] == "/v1/chat/completions" and asked[0]["temperature"] == 0
    system, user = asked[0]["messages"]
    assert "stay where you are" in system["content"] and user["content"] == "hold it"
    assert asked[0]["key"] is None


@pytest.mark.parametrize(
    "answer, why",
    [
        (lambda body: "dance", "answered 'dance'"),
        (lambda body: "stay, I think, because you said so", "answered"),
        (lambda body: "", "answered ''"),
        (slow, "did not answer in time"),
        (lambda body: 503, "HTTP status 503"),
        (lambda body: b"not JSON", "not what an OpenAI-compatible server sends"),
        (lambda body: b'{"choices": []}', "not what an OpenAI-compatible server sends"),
        (lambda body: json.dumps({"choices": [{"message": {"content": 3}}]}).encode(), "not what"),
        (lambda body: b'["stay"]', "not what an OpenAI-compatible server sends"),
        (lambda body: b"[" * 100_000, "not what an OpenAI-compatible server sends"),
    ],
)
def test_timeouts_and_nonsense_are_unsure(answer, why):
    with serving(answer) as (url, _):
        endpoint = Endpoint(url, KINDS, seconds=0.3)
        assert endpoint.read("hold it") == "unsure"
        answer, found = endpoint.explain("hold it")
        assert answer == "unsure" and why in found and "\n" not in found


def test_sentences_at_once_get_their_own_reasons():
    def answer(body):
        said = body["messages"][1]["content"]
        return slow(body) if said == "one" else f"{said}!"

    with serving(answer) as (url, _), ThreadPoolExecutor() as pool:
        endpoint = Endpoint(url, KINDS, seconds=0.3)
        one, two, three = pool.map(endpoint.explain, ["one", "two", "three"])
    assert "did not answer in time" in one[1]
    assert (two[1], three[1]) == ("the reader answered 'two!'", "the reader answered 'three!'")


def test_an_answer_that_comes_byte_by_byte_has_one_deadline():
    def drip(body):
        for byte in json.dumps({"choices": [{"message": {"content": "stay"}}]}).encode()[:8]:
            yield bytes([byte])
            time.sleep(0.1)

    with serving(drip) as (url, _):
        endpoint, begun = Endpoint(url, KINDS, seconds=0.2), time.monotonic()
        assert "did not answer in time" in endpoint.explain("hold it")[1]
        assert time.monotonic() - begun < 0.6


def test_a_reader_that_is_down_is_unsure_and_is_asked_again_later(monkeypatch):
    endpoint = Endpoint("http://127.0.0.1:9", KINDS, seconds=0.3)
    answer, why = endpoint.explain("hold it")
    assert answer == "unsure" and "cannot be reached" in why
    with serving(lambda body: "stay") as (url, asked):
        endpoint.url = f"{url}/chat/completions"
        assert endpoint.read("hold it") == "unsure" and asked == []  # not at every decision
        monkeypatch.setattr("mavic.language.reader.endpoint.RETRY_SECONDS", 0.0)
        assert endpoint.explain("hold it") == ("stay", "")
        assert endpoint.read("hold it") == "stay" and len(asked) == 1


def test_a_key_is_sent_and_the_sentence_is_one_short_line():
    with serving(lambda body: "push") as (url, asked):
        Endpoint(url, KINDS, key="secret").read("push\n" * 300)
    assert asked[0]["key"] == "Bearer secret"
    said = asked[0]["messages"][1]["content"]
    assert "\n" not in said and len(said) <= 400


def test_only_an_address_is_an_address():
    with pytest.raises(ValueError, match="begins with http:// or https://"):
        Endpoint("file:///etc/passwd", KINDS)


def test_a_team_on_robots_uses_it():
    with serving(lambda body: "avoid-left-board") as (url, asked):
        team = open_team(TEAM, reader=url)
        assert team.say("keep clear of that one").kind == "avoid-left-board"
        assert "don't use the left cutting board" in asked[0]["messages"][0]["content"]
    answer = team.say("and now something else")  # the server is gone
    assert answer.unsure and "cannot be reached" in answer.note
    assert team.instructions == ("avoid-left-board",)
