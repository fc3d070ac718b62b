"""A contract of an acceptance."""

from __future__ import annotations

from pathlib import Path

from assay.acceptance.contract import Contract, parse_contract

SMALL = """\
name: A machine
parties:
  buyer: {name: University, signers: [Ada Buyer]}
  vendor: {name: Computers, signers: [Vic Vendor]}
system: generic
nodes: {number: 2, may_be_missing: 1}
commitments:
  - id: ring
    check: Ring
    figure: hop_latency
    fabric: shm
    layout: packed
    scale: 1_node
    value: 3.5
    unit: us
    better: lower
    statistic: median
    runs: 5
    largest_spread: 0.1
rules: {category: base, text: As it is delivered.}
stability: {hours: 2, share: 0.9, most_failed_nodes: 1}
waivers: []
risks: {producer: 0.05, consumer: 0.1, good: 0.02, bad: 0.03}
most_jobs: 20
"""


def small(text: str = SMALL) -> Contract:
    return parse_contract(text, Path('contract.yaml'))
