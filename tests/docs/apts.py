"""docs/apts.md, made from docs/apts.yaml: `python -m tests.docs.apts`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CLAIM, PAGE = ROOT / "docs" / "apts.yaml", ROOT / "docs" / "apts.md"
WORDS = {"met": "met", "partially_met": "partly", "not_met": "not", "not_applicable": "not applicable"}
DOMAINS = {
    "SE": "Scope enforcement",
    "SC": "Safety controls",
    "HO": "Human oversight",
    "AL": "Graduated autonomy",
    "AR": "Auditability",
    "MR": "Manipulation resistance",
    "TP": "Supply chain trust",
    "RP": "Reporting",
}
HEAD = """# Beside the OWASP Autonomous Penetration Testing Standard

Made from [apts.yaml](apts.yaml) by `python -m tests.docs.apts`: the standard (version {version}) line by line
in our words, where the fleet stands at this commit, and what shows it. **{claim}**
*Met* is only what meets the whole normative text; *not applicable* is what the fleet does not do, or a level
that it does not offer; the level is L3. It is our own reading, not checked by others. A test holds that each
named file and test is there, and `make apts` runs the parts of the standard's customer acceptance procedure
that a machine of one's own can show.
"""


def load() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(CLAIM.read_text())
    return found


def page(claim: dict[str, Any]) -> str:
    """The page, in Markdown."""
    rows = claim["requirements"]
    open_ = sum(row["status"] in ("partially_met", "not_met") for row in rows if row["tier"] == 1)
    whole = sum(row["tier"] == 1 for row in rows) - open_
    says = f"No tier is claimed: {whole} of {whole + open_} lines of tier 1 are whole."
    parts = [HEAD.format(version=claim["standard_version"], claim=says), _counts(rows)]
    for code, title in DOMAINS.items():
        lines = ["| id | tier | asks | status | why | shown by |", "|---|---|---|---|---|---|"]
        for row in (one for one in rows if one["requirement_id"].split("-")[1] == code):
            lines.append(_line(row["requirement_id"][5:], f"{row['tier']} {row['level']}", row["asks"], row))
        parts.append(f"## {title} ({code})\n\n" + "\n".join(lines) + "\n")
    lines = ["| id | risk | status | why | shown by |", "|---|---|---|---|---|"]
    lines += [_line(row["id"], row["risk"], "", row) for row in claim["agentic_top_10"]]
    parts.append("## OWASP Top 10 for agentic applications\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _counts(rows: list[dict[str, Any]]) -> str:
    counts = Counter((row["tier"], row["status"]) for row in rows)
    lines = ["| tier | " + " | ".join(WORDS.values()) + " | all |", "|---" * 6 + "|"]
    for tier in (1, 2, 3):
        of = [counts[tier, status] for status in WORDS]
        lines.append(f"| {tier} | " + " | ".join(map(str, [*of, sum(of)])) + " |")
    return "\n".join(lines) + "\n"


def _line(*cells: Any) -> str:
    *words, row = cells
    shown = ", ".join(f"`{one}`" for one in row.get("evidence_refs", ()))
    texts = [word for word in words if word] + [WORDS[row["status"]], row["rationale"], shown]
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(load()))
