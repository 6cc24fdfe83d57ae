"""An ancestry hash says which attempts an attempt stands on, all the way up."""

import re
from hashlib import sha256
from pathlib import Path

from stepwell import Builder, Engine
from stepwell.core.kernel.ancestry import ancestry_hash
from tests.engine import jobs


def by_hand(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_the_hash_covers_node_number_and_the_sorted_hashes_of_the_parents() -> None:
    first, second = ancestry_hash("a", 1, []), ancestry_hash("b", 3, [])
    assert first == by_hand("a:1")
    assert ancestry_hash("c", 2, [second, first]) == by_hand(":".join(["c", "2", *sorted([first, second])]))


def test_another_attempt_of_an_ancestor_is_another_hash() -> None:
    assert ancestry_hash("b", 1, [ancestry_hash("a", 1, [])]) != ancestry_hash("b", 1, [ancestry_hash("a", 2, [])])


def test_attempts_of_a_run_carry_it() -> None:
    w = Builder("ancestry")
    a = w.node("a", job=jobs.double, args={"item": 1}, depends_on=None)
    b = w.node("b", job=jobs.double, args={"item": 2}, depends_on=None)
    c = w.node("c", job=jobs.double, args={"item": 3}, depends_on=[a, b])
    with Engine("memory://") as engine:
        run = engine.run(w)
        parents = sorted(by_hand(f"{node}:1") for node in (a, b))
        assert run.node("c").attempts[0].ancestry == by_hand(":".join([c, "1", *parents]))
        assert [node.attempts[0].ancestry for node in run.nodes()] == [
            run.node(name).attempts[0].ancestry for name in (node.id for node in run.nodes())
        ]
        before = run.node("c").attempts[0].ancestry
        run.reattempt("c").wait(30).check()
        assert run.node("c").attempts[0].ancestry == before
        assert run.node("c").attempts[1].ancestry == by_hand(":".join([c, "2", *parents]))


def test_an_attempt_keeps_it_when_what_it_stands_on_is_superseded() -> None:
    """Chain of three; the second one's attempts stand on the first and the second attempt of the first one."""
    w = Builder("cascaded")
    a, b, c = (w.node(name, job=jobs.double, args={"item": 1}) for name in "abc")
    with Engine("memory://") as engine:
        run = engine.run(w)
        first = {node.id: node.attempts[0].ancestry for node in run.nodes()}
        run.reattempt("a", cascade=True).wait(30).check()
        again = {node.id: tuple(attempt.ancestry for attempt in node.attempts) for node in run.nodes()}
    assert {node: found[0] for node, found in again.items()} == first
    second = {a: by_hand(f"{a}:2")}
    second[b] = by_hand(f"{b}:2:{second[a]}")
    second[c] = by_hand(f"{c}:2:{second[b]}")
    assert {node: found[1] for node, found in again.items()} == second


def test_a_fork_has_first_attempts_of_what_it_shares_whatever_number_they_had() -> None:
    w = Builder("shared")
    a, b, c = (w.node(name, job=jobs.double, args={"item": 1}) for name in "abc")
    with Engine("memory://") as engine:
        run = engine.run(w)
        run.reattempt("a", cascade=True).wait(30).check()
        fork = run.fork("c").wait(30).check()
        found = {node.id: [attempt.ancestry for attempt in node.attempts] for node in fork.nodes()}
        fork.reattempt("b", cascade=True).wait(30).check()
        later = {node.id: [attempt.ancestry for attempt in node.attempts] for node in fork.nodes()}
    first = by_hand(f"{a}:1")
    second = by_hand(f"{b}:1:{first}")
    third = by_hand(f"{c}:1:{second}")
    assert found == {a: [first], b: [second], c: [third]}
    again = by_hand(f"{b}:2:{first}")
    assert later == {a: [first], b: [second, again], c: [third, by_hand(f"{c}:2:{again}")]}


def test_the_page_has_the_formula() -> None:
    page = (Path(__file__).parents[3] / "docs" / "determinism.md").read_text("utf-8")
    a, b, c = re.findall(r"^\| attempt \d of `[abc]`, .* \| `(\w{64})` \|$", page, re.MULTILINE)
    assert (a, b) == (ancestry_hash("a", 1, []), ancestry_hash("b", 2, [a]))
    assert c == ancestry_hash("c", 1, [b, a]) == sha256(":".join(["c", "1", *sorted([a, b])]).encode()).hexdigest()
