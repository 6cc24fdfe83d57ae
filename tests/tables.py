"""Tables of the documentation that are made from forms."""

from __future__ import annotations

from pydantic import BaseModel


def field_rows(*forms: type[BaseModel], named: str = "") -> set[str]:
    """The rows of a table of fields: name and description, each field once."""
    return {
        f"| `{named}{info.alias or name}` | {info.description} |"
        for form in forms
        for name, info in form.model_fields.items()
    }


def rows_below(heading: str, page: str) -> set[str]:
    """The rows of the first table below a heading, without those above the line."""
    lines = iter(page.partition(f"\n{heading}\n")[2].splitlines())
    for line in lines:
        if line.startswith("|---"):
            break
    rows = set()
    for line in lines:
        if not line.startswith("|"):
            break
        rows.add(line)
    return rows
