"""Every pair of ops, one uncommitted while the other waits or skips: the answer is that of one of both orders."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer
from tests.stores.postgres.interleaving import Interleaving, pairs
from tests.stores.postgres.sizes import size


@pytest.fixture(scope="module")
def interleaving(postgres: PostgresServer) -> Iterator[Interleaving]:
    both = Interleaving(postgres.new_url())
    yield both
    both.close()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("commit", [True, False], ids=["committed", "rolled back"])
def test_the_answer_is_that_of_one_of_both_orders(interleaving: Interleaving, commit: bool) -> None:
    for first, second in pairs(size(151, 1)):
        interleaving.check(first, second, commit=commit)


def test_of_two_who_put_a_new_record_at_once_one_is_refused(interleaving: Interleaving) -> None:
    interleaving.check("put a new one", "put another in its place", commit=True)
