"""Services of the settings: read once, every mistake told, no value shown."""

from __future__ import annotations

import pytest

from stepwell.base.forms.problems import Problems
from stepwell.base.secret_refs import SecretRef
from stepwell.base.setting_types import read_table
from stepwell.base.settings import Settings, checked_services
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
    assert not crm.is_private
    assert local.is_private
    assert local.basic == ("me", SecretRef("P"))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "a service needs its base_url"),
        ({"base_url": "ftp://x"}, "http://"),
        ({"base_url": "https://"}, "a host"),
        ({"base_url": "https://me:hunter2@x"}, "no user and password"),
        ({"base_url": "https://hunter2@x"}, "no user and password"),
        ({"base_url": "https://:hunter2@x"}, "no user and password"),
        ({"base_url": "https://x?key=hunter2"}, "no query"),
        ({"base_url": "https://x:port"}, "base_url"),
        ({"base_url": "https://x", "url": "y"}, "a service has no field 'url'; there are base_url, "),
        ({"base_url": "https://x", "bearer": 7}, "one line of text"),
        ({"base_url": "https://x", "bearer": "hunter2\r\nX: y"}, "one line of text"),
        ({"base_url": "https://x", "bearer": "secret:a b"}, "after secret:, as in"),
        ({"base_url": "https://x", "basic": "hunter2"}, "user and password"),
        ({"base_url": "https://x", "bearer": "a", "basic": ["a", "b"]}, "not both"),
        ({"base_url": "https://x", "headers": {"a b": "c"}}, "name of a header"),
        ({"base_url": "https://x", "headers": "hunter2"}, "expected an object"),
        ({"base_url": "https://x", "model": 1}, "expected the name of a model"),
        ({"base_url": "https://x", "private": "yes"}, "true or false"),
        ("https://hunter2", "expected a table with at least base_url"),
    ],
)
def test_a_mistake_is_told_without_its_value(entry, told):
    problems = Problems()
    read_table(Settings, {"services": {"crm": entry}}, problems)
    assert any(told in str(problem) for problem in problems)
    assert all(problem.path.startswith("$.services.crm") and "hunter2" not in str(problem) for problem in problems)
    assert not any("hunter2" in str(problem.as_json()) for problem in problems)
    with pytest.raises(InputError, match=r"^services\.crm"):
        checked_services({"crm": entry})
    with pytest.raises(InputError, match="expected a table"):
        checked_services(7)
