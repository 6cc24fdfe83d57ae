"""Services of the settings: read once, every mistake told, no value shown."""

from __future__ import annotations

import pytest

from stepwell.base.secrets import SecretRef
from stepwell.base.services import checked_services, services_of
from stepwell.errors import InputError


def test_a_service_has_its_url_and_its_credentials():
    [crm, local] = checked_services(
        {
            "crm": {"base_url": "https://crm.example.com/api/", "bearer": "secret:T", "headers": {"X-Key": "secret:K"}},
            "local": {"base_url": "http://localhost:8000", "basic": ["me", "secret:P"], "model": "small"},
        }
    ).values()
    assert crm.base_url == "https://crm.example.com/api"
    assert crm.bearer == SecretRef("T")
    assert crm.references == (SecretRef("T"), SecretRef("K"))
    assert not crm.private
    assert local.private
    assert local.basic == ("me", SecretRef("P"))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "base_url"),
        ({"base_url": "ftp://x"}, "http://"),
        ({"base_url": "https://"}, "a host"),
        ({"base_url": "https://me:hunter2@x"}, "no user and password"),
        ({"base_url": "https://hunter2@x"}, "no user and password"),
        ({"base_url": "https://:hunter2@x"}, "no user and password"),
        ({"base_url": "https://x?key=hunter2"}, "no query"),
        ({"base_url": "https://x:port"}, "base_url"),
        ({"base_url": "https://x", "url": "y"}, "there is no 'url'"),
        ({"base_url": "https://x", "bearer": 7}, "one line of text"),
        ({"base_url": "https://x", "bearer": "hunter2\r\nX: y"}, "one line of text"),
        ({"base_url": "https://x", "bearer": "secret:a b"}, "a secret is named by"),
        ({"base_url": "https://x", "basic": "hunter2"}, "user and password"),
        ({"base_url": "https://x", "bearer": "a", "basic": ["a", "b"]}, "not both"),
        ({"base_url": "https://x", "headers": {"a b": "c"}}, "name of a header"),
        ({"base_url": "https://x", "headers": "hunter2"}, "headers needs a table"),
        ({"base_url": "https://x", "model": 1}, "model needs"),
        ({"base_url": "https://x", "private": "yes"}, "true or false"),
        ("https://hunter2", "a table is needed"),
    ],
)
def test_a_mistake_is_told_without_its_value(entry, told):
    found, problems = services_of({"crm": entry})
    assert found == {}
    assert any(told in problem for problem in problems)
    assert all(problem.startswith("crm: ") and "hunter2" not in problem for problem in problems)
    with pytest.raises(InputError, match="services: crm"):
        checked_services({"crm": entry})
    assert services_of(7)[1]
