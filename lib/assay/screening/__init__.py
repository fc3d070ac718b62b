"""Which node, link or switch of a machine is bad: measured in one job, judged, and kept."""
