"""How it is known that a thing was done once: the proof of a node, and requests whose answers were lost."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from stepwell import Engine
from tests.browser.shop import Order

Open = Callable[..., Page]


def test_the_proof_of_a_node_has_its_attempts_and_the_key_of_its_effects(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4), idempotency_key="the start").wait(timeout=20)
    page = open_page(f"/runs/{run.id}?node=check_fraud&tab=proof")
    proof = page.get_by_role("tabpanel", name="Proof")
    expect(proof.get_by_role("listitem")).to_have_count(2)
    detail = page.request.get(f"/api/v1/runs/{run.id}/nodes/check_fraud").json()
    expect(proof.get_by_text(detail["idempotency_key"], exact=True)).to_be_visible()
    expect(proof.get_by_text(detail["attempt_list"][0]["id"], exact=True)).to_be_visible()
    expect(proof.get_by_text("the start")).to_have_count(0)
    proof.get_by_role("button", name="Check every invariant of the run").click()
    expect(proof.get_by_text("All invariants hold")).to_be_visible()


def test_a_fork_whose_answer_was_lost_is_one_fork(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page(f"/runs/{run.id}?seq=3")

    def lose_the_answer(route: Route) -> None:
        if (route.request.post_data_json or {}).get("dry_run"):
            return route.fallback()
        route.fetch()
        return route.abort()

    page.route("**/fork", lose_the_answer)
    page.get_by_role("button", name="Fork from here").click()
    fork = page.get_by_role("dialog").get_by_role("button", name="Fork", exact=True)
    fork.click()
    expect(page.get_by_role("alert").get_by_text("cannot be reached")).to_be_visible()
    page.unroute("**/fork")
    fork.click()
    page.wait_for_url(lambda url: run.id not in url)
    assert [each.id for each in engine.runs(fork_of=run.id)] == [page.url.rpartition("/")[2]]
