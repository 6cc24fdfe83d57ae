"""`stepwell replay` and `stepwell export`."""

from __future__ import annotations

import json

from tests.cli.conftest import Shop

BOOKS = """
from stepwell import Context, Workflow, step

class Books(Workflow):
    copies: int = 2

    @step(side_effects="recordable")
    def price(self, ctx: Context) -> float:
        print("looking it up")
        return ctx.effect("price", lambda: {price}) * self.copies

    @step
    def ship(self, price: float) -> str:
        return f"shipped for {price}"
"""


def write(shop: Shop, *, factor: str = "self.copies") -> None:
    shop.write("books.py", BOOKS.replace("{price}", "12.5").replace("self.copies\n", f"{factor}\n"))


def test_a_run_is_replayed(shop: Shop) -> None:
    write(shop)
    shop("run", "books:Books", "--run-id", "books-1")
    ended = shop("replay", "books-1")
    assert "1 node executed, 1 effect served" in ended.out
    assert "stubbed, opaque: ship" in ended.out
    assert "looking it up" in ended.err
    report = shop("replay", "books-1", "--json").json
    assert (report["executed"], report["stubbed"], report["effects"]) == (["price"], {"ship": "opaque"}, 1)


def test_a_difference_is_an_exit_code(shop: Shop) -> None:
    write(shop)
    shop("run", "books:Books", "--run-id", "books-1")
    assert "`stepwell replay books.cassette.json --jobs books`" in shop("export", "books-1", "books.cassette.json").out
    write(shop, factor="(self.copies + 1)")
    for what in (["books-1"], ["books.cassette.json", "--jobs", "books"]):
        ended = shop("replay", *what, code=1)
        assert "node 'price', attempt 1: its output is not the one that was recorded" in ended.err
        assert "$: recorded 25.0, now 37.5" in ended.err


def test_a_cassette_runs_only_what_is_allowed(shop: Shop) -> None:
    write(shop)
    shop("run", "books:Books", "--run-id", "books-1")
    shop("export", "books-1", "books.cassette.json")
    refused = shop("replay", "books.cassette.json", code=2).err
    assert "books:Books is not registered here" in refused
    assert "--jobs books" in refused
    assert "expected the name of a module" in shop("replay", "books.cassette.json", "--jobs", "a:b", code=2).err
    shop.write("stepwell.toml", 'jobs = ["books"]\n')
    assert "1 node executed" in shop("replay", "books.cassette.json").out


def test_a_replay_that_executed_nothing_is_no_success(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=1", "--run-id", "order-1")
    assert "no body was executed" in shop("replay", "order-1", code=1).err


def test_files_and_runs_that_are_not_there_or_no_cassettes(shop: Shop) -> None:
    assert "no run 'order-9'" in shop("replay", "order-9", code=3).err
    assert "cannot be read" in shop("replay", "none.cassette.json", code=2).err
    shop.write("odd.json", json.dumps({"version": 1}))
    assert "expected a cassette" in shop("replay", "odd.json", code=2).err
    write(shop)
    shop("run", "books:Books", "--run-id", "books-1")
    assert "cannot be written" in shop("export", "books-1", "no/such/folder.json", code=2).err


VAULT = """
import stepwell
from stepwell import Context, Workflow, step

TOKEN = stepwell.secret("s3cr3t-of-" + "the-vault")

def fetch(token: str) -> str:
    return f"opened with {token}"

class Vault(Workflow):
    @step(side_effects="recordable")
    def unlock(self, ctx: Context) -> dict:
        return {"answer": ctx.effect("fetch", fetch, TOKEN), "token": TOKEN, "cents": CENTS}
"""
DOORS = """
from stepwell import Builder

def doors() -> Builder:
    w = Builder("doors")
    w.node("unlock", job="vault_jobs:unlock", side_effects="pure")
    return w
"""
JOBS = """
import stepwell

TOKEN = stepwell.secret("s3cr3t-of-" + "the-vault")

def unlock() -> str:
    return TOKEN
"""


def test_what_is_exported_holds_no_secret_that_the_code_of_the_run_names(shop: Shop) -> None:
    shop.write("vault.py", VAULT.replace("CENTS", "1"))
    shop("run", "vault:Vault", "--run-id", "vault-1")
    shop("export", "vault-1", "vault.cassette.json")
    assert "s3cr3t" not in (shop.folder / "vault.cassette.json").read_text(encoding="utf-8")
    assert "1 node executed, 1 effect served" in shop("replay", "vault.cassette.json", "--jobs", "vault").out
    shop.write("vault.py", VAULT.replace("CENTS", "2"))
    for what in (["vault-1"], ["vault.cassette.json", "--jobs", "vault"]):
        ended = shop("replay", *what, code=1)
        assert "$.cents: recorded 1, now 2" in ended.err
        assert "s3cr3t" not in ended.err + ended.out
        assert "$.token" not in ended.err


def test_the_jobs_of_a_dynamic_run_are_its_code_too(shop: Shop) -> None:
    shop.write("doors.py", DOORS)
    shop.write("vault_jobs.py", JOBS)
    shop("run", "doors:doors", "--run-id", "doors-1")
    shop("export", "doors-1", "doors.cassette.json")
    assert "s3cr3t" not in (shop.folder / "doors.cassette.json").read_text(encoding="utf-8")


def test_without_its_code_a_run_is_exported_only_when_that_is_asked_for(shop: Shop) -> None:
    shop.write("vault.py", VAULT.replace("CENTS", "1"))
    shop("run", "vault:Vault", "--run-id", "vault-1")
    shop.write("vault.py", "raise RuntimeError('half of a deploy')")
    ended = shop("export", "vault-1", "vault.cassette.json", code=2)
    assert "importing vault raised RuntimeError: half of a deploy" in ended.err
    assert "--missing-code-ok" in ended.err
    assert not (shop.folder / "vault.cassette.json").exists()
    shop("export", "vault-1", "vault.cassette.json", "--missing-code-ok")
    assert (shop.folder / "vault.cassette.json").exists()
    assert "not masked" in " ".join(shop("export", "--help").out.split())


LABELS = """
from stepwell import Context, Workflow, step

class Steps(Workflow):
    @step
    def load(self, ctx: Context) -> int:
        ctx.checkpoint("all loaded")
        return 1

    @step
    def use(self) -> int:
        return 2
"""


def test_a_fork_begins_at_a_label(shop: Shop) -> None:
    shop.write("labels.py", LABELS)
    shop("run", "labels:Steps", "--run-id", "steps-1")
    ended = shop("fork", "steps-1", "--at", "all loaded", "--run-id", "steps-2")
    assert "1 of 2 nodes shared" in ended.err
    assert "has no node 'nowhere'" in shop("fork", "steps-1", "--at", "nowhere", code=2).err
