"""200 mutations, each scored on its own. The problem: how many there are is known only when the file is read; one of them is
in a gene that the reference does not know yet; and when that is mended nobody wants to score the other 199 again.

    mutation_1 ... mutation_200  ->  aggregate  ->  report

Run it with `python -m examples.mutations`, or step by step (the first command fails, and says how to go on):

    stepwell run examples.mutations:mutations --run-id m-1
    echo "BRCA2 0.8" >> .stepwell/mutations/genes.txt
    stepwell retry m-1
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.common import database
from stepwell import Builder, Context, Engine, Run

GENES = {"TP53": 0.9, "KRAS": 0.7, "EGFR": 0.6, "PTEN": 0.5}
COUNT, POISONED = 200, 77


def write_files(folder: Path) -> None:
    """Made-up variants, one of them in a gene that is missing from the reference. What is there is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    genes = [*GENES] * (COUNT // len(GENES))
    genes[POISONED - 1] = "BRCA2"
    variants = (f"{number} {gene} {number * 37 % 1000} {'ACGT'[number % 4]}" for number, gene in enumerate(genes, 1))
    for name, lines in (("variants.txt", variants), ("genes.txt", (f"{gene} {w}" for gene, w in GENES.items()))):
        if not (folder / name).exists():
            write_whole(folder / name, "".join(f"{line}\n" for line in lines))


def write_whole(path: Path, text: str) -> None:
    """All of it or nothing, also when the process is killed in the middle; twice is the same as once."""
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def mutations(folder: str = ".stepwell/mutations") -> Builder:
    """A node per line of the file. "finish": what does not need a failed mutation goes on, so all others are scored."""
    place = Path(folder).resolve()
    write_files(place)
    variants = [line.split() for line in (place / "variants.txt").read_text(encoding="utf-8").splitlines()]
    w = Builder("mutations", on_failure="finish")
    parts = w.fan_out(
        variants,
        job=score,
        name=lambda variant: f"mutation_{variant[0]}",
        args=lambda variant: {"folder": str(place), "gene": variant[1], "position": int(variant[2])},
    )
    w.node("aggregate", job=aggregate, depends_on=parts)
    w.node("report", job=report, args={"folder": str(place)})  # no depends_on: after the node before it
    return w


def score(folder: str, gene: str, position: int) -> dict[str, Any]:
    weights = dict(line.split() for line in (Path(folder) / "genes.txt").read_text(encoding="utf-8").splitlines())
    if gene not in weights:
        raise LookupError(f"{gene} is not in genes.txt")
    return {"gene": gene, "score": round(float(weights[gene]) * (1 - position / 1000), 3)}


def aggregate(ctx: Context) -> dict[str, Any]:
    """`ctx.outputs.parents()` reads what all 200 returned at once, by name."""
    by_gene: dict[str, list[float]] = {}
    for scored in ctx.outputs.parents().values():
        by_gene.setdefault(scored["gene"], []).append(scored["score"])
    return {gene: {"count": len(found), "mean": round(sum(found) / len(found), 3)} for gene, found in by_gene.items()}


def report(folder: str, ctx: Context) -> int:
    rows = sorted(ctx.outputs["aggregate"].items(), key=lambda item: -item[1]["mean"])
    write_whole(Path(folder) / "report.txt", "".join(f"{gene} {row['count']} {row['mean']}\n" for gene, row in rows))
    return len(rows)


def show(run: Run) -> None:
    console = Console(width=72)
    table = Table("gene", "mutations", "mean score")
    for gene, row in sorted(run.output("aggregate").items()):
        table.add_row(gene, str(row["count"]), f"{row['mean']:.3f}")
    console.print(table)
    attempts = Counter(len(node.attempts) for node in run.nodes() if node.name.startswith("mutation_"))
    for number, count in sorted(attempts.items()):
        console.print(f"mutations with {number} attempt{'s' if number > 1 else ''}: {count}")


def main() -> None:
    with database() as path, Engine(f"sqlite:///{path}") as engine:
        run = engine.run(mutations(str(path.parent)), run_id="mutations-1", check=False)
        if run.status == "FAILED":
            print(run.why())
            write_whole(path.parent / "genes.txt", "".join(f"{g} {w}\n" for g, w in {**GENES, "BRCA2": 0.8}.items()))
            print("\nmended genes.txt; runs again:", ", ".join(node.name for node in run.retry(dry_run=True)))
            run.retry().wait().check()
        show(run)


if __name__ == "__main__":
    main()
