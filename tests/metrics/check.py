"""Holds the figures against OpenMetrics, and the dashboard, the alerts and their pages against the figures."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Iterator

import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

# What Prometheus itself says of each target.
OF_PROMETHEUS = {"up"}
# The series of a small server that has played everything; each costs the operator memory.
MOST_SERIES = 600
LABEL_VALUE = re.compile(r"[A-Za-z0-9_./{}+-]*")
# A name with its matchers, as PromQL has it.
SELECTOR = re.compile(r"\b(chips_\w+|up)\b(?:\s*\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
# Labels that the scraping Prometheus adds, and what Grafana fills in.
ADDED = {"job", "instance"}

faults: list[str] = []


def fault(text: str) -> None:
    faults.append(text)


def figures(text: str) -> list[Sample]:
    """Every sample, once the text is read strictly and each family is as it should be."""
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    for family in families:
        if not family.name.startswith("chips_"):
            fault(f"{family.name} does not begin with chips_")
        if len(family.documentation) < 8 or family.documentation.startswith(family.name):
            fault(f"{family.name} has no help: {family.documentation!r}")
        for unit in ("seconds", "bytes"):
            if (unit in family.name) != (family.unit == unit):
                fault(f"{family.name} has the unit {family.unit!r}")
        if re.search(r"_(ms|milliseconds|kb|mb|total|count)$", family.name):
            fault(f"{family.name}: base units, and no suffix of a sample's in a name")
    for sample in samples:
        for label, value in sample.labels.items():
            if not LABEL_VALUE.fullmatch(value) or re.search(r"(hrn|usr|wsp|qst|run|evt|agt)_[0-9A-Z]{26}", value):
                fault(f"{sample.name}{{{label}={value!r}}}: nobody's text and no identifier may be a label")
    if len(samples) > MOST_SERIES:
        fault(f"{len(samples)} series are more than {MOST_SERIES}")
    return samples


def expressions(root: Path) -> Iterator[tuple[str, str]]:
    """What the dashboard and the alerts ask for, each with where it stands."""
    dashboard = json.loads((root / "deploy/grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        if not panel.get("description"):
            fault(f"the panel {panel['title']!r} has no description")
        if not panel["targets"]:
            fault(f"the panel {panel['title']!r} points at nothing")
        for target in panel["targets"]:
            yield f"panel {panel['title']!r}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if isinstance(variable["query"], dict):
            yield f"variable {variable['name']!r}", variable["query"]["query"]
    for alert in alerts(root):
        yield f"alert {alert['alert']}", alert["expr"]


def alerts(root: Path) -> list[dict[str, Any]]:
    groups = yaml.safe_load((root / "deploy/alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def fits(sample: Sample, matchers: list[tuple[str, str, str]]) -> bool:
    for label, operator, wanted in matchers:
        value = sample.labels.get(label, "")
        same = re.fullmatch(wanted, value) is not None if "~" in operator else value == wanted
        if same == operator.startswith("!"):
            return False
    return True


def check_expressions(root: Path, samples: list[Sample]) -> int:
    count = 0
    labels_of: dict[str, set[str]] = {}
    for sample in samples:
        labels_of.setdefault(sample.name, set()).update(sample.labels)
    for where, expression in expressions(root):
        selectors = SELECTOR.findall(expression)
        if not selectors:
            fault(f"{where} asks for no figure: {expression}")
        used: set[str] = set()
        for name, inside in selectors:
            count += 1
            if name in OF_PROMETHEUS:
                continue
            if name not in labels_of:
                fault(f"{where} asks for {name}, which is not there")
                continue
            used |= labels_of[name]
            matchers = [found for found in MATCHER.findall(inside) if found[0] not in ADDED]
            if not any(sample.name == name and fits(sample, matchers) for sample in samples):
                fault(f"{where} asks for {name}{{{inside}}}, and no series fits")
            unknown = {label for label, _, _ in matchers} - labels_of[name]
            if unknown:
                fault(f"{where} asks for {name} by {unknown}, and it has {labels_of[name]}")
        for grouped in re.findall(r"\b(?:by|without|on|group_left)\s*\(([^)]*)\)", expression):
            for label in filter(None, re.split(r"[\s,]+", grouped)):
                if label not in used | ADDED:
                    fault(f"{where} groups by {label}, which none of its figures has")
    return count


def check_pages(root: Path, samples: list[Sample]) -> None:
    """Each alert has its page, each page its alert; each figure is listed, and each that is listed is there."""
    page = (root / "docs/operating.md").read_text()
    headings = {heading.lower() for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
    names = {alert["alert"] for alert in alerts(root)}
    for alert in alerts(root):
        name = alert["alert"]
        annotations = alert["annotations"]
        if annotations.get("runbook") != f"docs/operating.md#{name.lower()}":
            fault(f"{name} has another runbook than its own section: {annotations.get('runbook')}")
        for part in ("summary", "description"):
            if not annotations.get(part):
                fault(f"{name} has no {part}")
        if alert["labels"]["severity"] not in ("critical", "warning", "info"):
            fault(f"{name} has another severity: {alert['labels']}")
        if name.lower() not in headings:
            fault(f"{name} has no section in docs/operating.md")
    for heading in re.findall(r"^### (Chips[A-Z]\w+)$", page, re.MULTILINE):
        if heading not in names:
            fault(f"docs/operating.md explains {heading}, which is no alert")
    listed = set(re.findall(r"^\| `(chips_\w+)`", page, re.MULTILINE))
    there = {re.sub(r"_(bucket|sum|count)$", "", sample.name) for sample in samples}
    for name in sorted(there ^ listed):
        fault(f"{name} is {'not listed in docs/operating.md' if name in there else 'listed in docs/operating.md and not there'}")


def main() -> int:
    root = Path(sys.argv[1])
    samples = figures(sys.stdin.read())
    count = check_expressions(root, samples)
    check_pages(root, samples)
    for text in faults:
        print(text)
    print(f"{len(samples)} series, {count} of them asked for by panels and alerts")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
