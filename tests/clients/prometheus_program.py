"""Run by the Python with Prometheus' client library: parses a page strictly.

Usage: prometheus_program.py FILE

Prints each sample by its name and labels, as JSON.
"""

import json
import sys
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families


def main():
    page = Path(sys.argv[1]).read_text()
    samples, families = {}, set()
    for family in text_string_to_metric_families(page):
        if family.name in families:
            sys.exit(f"duplicate family: {family.name}")
        families.add(family.name)
        if family.type == "unknown" or not family.documentation:
            sys.exit(f"the family {family.name} has no type or no help")
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            name = f"{sample.name}{{{labels}}}" if labels else sample.name
            if name in samples:
                sys.exit(f"duplicate sample: {name}")
            samples[name] = sample.value
    print(json.dumps(samples))


main()
