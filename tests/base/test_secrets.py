"""Secrets: where they are found, who may use them, and that nobody sees them."""

from __future__ import annotations

import pickle

import pytest

from stepwell.base.codec import encode
from stepwell.base.forms.problems import Problems
from stepwell.base.masking import mask
from stepwell.base.secret_refs import SecretRef, references, references_of
from stepwell.base.secrets import Secrets, resolved
from stepwell.base.services import SecretSource
from stepwell.base.setting_types import read_table
from stepwell.base.settings import Settings
from stepwell.errors import InputError, MissingSecret, NotJson, TransientError


def test_only_the_exact_text_is_a_reference():
    assert SecretRef.of("secret:CRM_TOKEN") == SecretRef("CRM_TOKEN")
    for text in (
        "secret:",
        " secret:A",
        "secret:A ",
        "secret:A\n",
        "Bearer secret:A",
        "secret:1",
        None,
        7,
    ):
        assert SecretRef.of(text) is None


def test_a_reference_shows_only_its_name_and_is_no_data():
    ref = SecretRef("CRM_TOKEN")
    assert str(ref) == repr(ref) == f"{ref}" == "secret:CRM_TOKEN"
    assert pickle.loads(pickle.dumps(ref)) == ref
    with pytest.raises(AttributeError):
        ref.name = "OTHER"
    with pytest.raises(NotJson):
        encode({"key": ref})
    with pytest.raises(InputError):
        SecretRef("a b")


def test_where_a_secret_comes_from_the_first_that_has_it(tmp_path):
    (tmp_path / "A").write_text("from-folder\n")
    (tmp_path / "B").write_text("folder-b\r\n")
    (tmp_path / "own").write_text("from-own-file")
    environment = {"STEPWELL_SECRET_A": "from-env", "STEPWELL_SECRET_C": "env-c", "CRM": "from-variable"}
    sources = {"D": SecretSource(env="CRM"), "E": SecretSource(file=str(tmp_path / "own"))}
    secrets = Secrets(sources, provider={"A": "from-provider"}, folder=tmp_path, environment=environment)
    found = {name: secrets.value(SecretRef(name)) for name in "ABCDE"}
    assert found == {"A": "from-provider", "B": "folder-b", "C": "env-c", "D": "from-variable", "E": "from-own-file"}
    assert mask("".join(found.values())) == "***" * 5


def test_documents_cannot_name_any_variable_of_the_process():
    secrets = Secrets(environment={"AWS_SECRET_ACCESS_KEY": "nobody-gets-it"})
    with pytest.raises(MissingSecret, match="set STEPWELL_SECRET_AWS_SECRET_ACCESS_KEY"):
        secrets.value(SecretRef("AWS_SECRET_ACCESS_KEY"))


def test_a_secret_may_be_for_some_services_only():
    secrets = Secrets({"CRM": SecretSource(services=frozenset({"crm"}))}, provider={"CRM": "swordfish-3"})
    assert secrets.value(SecretRef("CRM"), "crm") == "swordfish-3"
    assert str(secrets.problem(SecretRef("CRM"), "mail")).startswith(
        "secret:CRM may not be used for service 'mail': it is for crm"
    )
    assert str(secrets.problem(SecretRef("CRM"))).startswith("secret:CRM may not be used for no service: it is for crm")
    assert secrets.problem(SecretRef("CRM"), "crm") is None


def test_what_is_missing_says_where_it_was_looked_for(tmp_path):
    sources = {"A": SecretSource(env="NOPE"), "B": SecretSource(file=str(tmp_path / "b"))}
    secrets = Secrets(sources, folder=tmp_path, environment={})
    assert secrets.problem(SecretRef("A")) == "secret:A is not here: the variable NOPE is not set"
    assert secrets.problem(SecretRef("B")) == f"secret:B is not here: there is no file {tmp_path / 'b'}"
    told = secrets.problem(SecretRef("C"))
    assert told is not None
    assert told.startswith(f"secret:C is not here: set STEPWELL_SECRET_C, write the file {tmp_path / 'C'}")


def test_a_folder_in_place_of_a_file_and_other_trouble_is_told(tmp_path):
    (tmp_path / "A").mkdir()
    (tmp_path / "B").write_bytes(b"\xff\xfe\xfd\xfc")
    (tmp_path / "C").write_bytes(b"x" * 70_000)
    secrets = Secrets(folder=tmp_path, environment={"STEPWELL_SECRET_D": "abc"})
    for name, told in (("A", "cannot be read"), ("B", "is no text"), ("C", "more than 65,536"), ("D", "3 characters")):
        assert told in str(secrets.problem(SecretRef(name)))


def test_a_provider_that_fails_shows_nothing_of_what_it_says():
    class Vault:
        def get(self, name: str) -> str:
            raise RuntimeError("token hunter2 refused")

    with pytest.raises(TransientError) as caught:
        Secrets(provider=Vault()).value(SecretRef("A"))
    assert str(caught.value) == "secret:A could not be read: Vault.get raised RuntimeError"
    assert caught.value.__cause__ is None
    with pytest.raises(InputError, match=r"get\(name\)"):
        Secrets(provider=7)  # type: ignore[arg-type]
    assert "expected text" in str(Secrets(provider={"A": 7}).problem(SecretRef("A")))  # type: ignore[dict-item]


def test_references_are_found_and_resolved_wherever_they_are():
    config = {"a": [SecretRef("A"), {"b": SecretRef("B")}], "c": "secret:C"}
    assert list(references(config)) == [SecretRef("A"), SecretRef("B")]
    written = {"a": ["secret:A", {"b": "secret:B"}], "c": "secret:C d", "n": [7, None]}
    assert references_of(written) == {"a": config["a"], "c": "secret:C d", "n": [7, None]}
    secrets = Secrets(provider={"A": "aaaa-1", "B": "bbbb-2"})
    assert resolved(config, secrets) == {"a": ["aaaa-1", {"b": "bbbb-2"}], "c": "secret:C"}


def test_a_secret_that_was_changed_is_used_as_it_is_now(tmp_path):
    secrets = Secrets(folder=tmp_path)
    for value in ("first-value", "second-value"):
        (tmp_path / "A").write_text(value)
        assert secrets.value(SecretRef("A")) == value


def test_settings_say_where_secrets_are_and_mistakes_show_no_values():
    problems = Problems()
    table = read_table(
        Settings, {"secrets": {"A": {"env": "X", "services": ["crm"]}, "B": {"file": "/run/b"}}}, problems
    )
    sources = {"A": SecretSource(env="X", services=frozenset({"crm"})), "B": SecretSource(file="/run/b")}
    assert (table, problems) == ({"secrets": sources}, [])
    wrong = {
        "A": "hunter2",
        "B": {"envv": "hunter2"},
        "E": {"env": 7},
        "C": {"env": "X", "file": "Y"},
        "D": {"services": "crm"},
        "1": {},
    }
    read_table(Settings, {"secrets": wrong}, problems)
    assert {problem.place[1] for problem in problems} == wrong.keys()
    assert len(problems) == 6
    assert not any("hunter2" in str(problem.as_json()) for problem in problems)
    read_table(Settings, {"secrets": []}, problems)
    assert problems[-1].message == "expected a table, one entry for each name"


def test_the_credential_of_a_service_is_for_it_alone_unless_its_entry_says_otherwise():
    provider = {"CRM": "swordfish-40", "OPEN": "swordfish-41", "OTHER": "swordfish-42"}
    owners = {"CRM": frozenset({"crm"}), "OPEN": frozenset({"crm"})}
    sources = {"OPEN": SecretSource(services=frozenset({"*"}))}
    secrets = Secrets(sources, provider=provider).owned_by(owners)
    assert secrets.problem(SecretRef("CRM"), "crm") is None
    assert "it is for crm" in str(secrets.problem(SecretRef("CRM")))
    assert "it is for crm" in str(secrets.problem(SecretRef("CRM"), "mail"))
    for name in ("OPEN", "OTHER"):
        assert secrets.problem(SecretRef(name)) is None
        assert secrets.problem(SecretRef(name), "mail") is None


def test_whether_a_secret_is_here_is_asked_once_for_many_nodes_and_its_value_each_time():
    class Vault:
        asked = 0

        def get(self, name: str) -> str | None:
            self.asked += 1
            return None if name == "B" else "swordfish-50"

    vault = Vault()
    secrets = Secrets(provider=vault, environment={})
    assert [secrets.problem(SecretRef("A")) for _ in range(1_000)] == [None] * 1_000
    assert vault.asked == 1
    for _ in range(3):
        assert secrets.value(SecretRef("A")) == "swordfish-50"
        assert secrets.problem(SecretRef("B")) is not None  # it may come any moment
    assert vault.asked == 7
