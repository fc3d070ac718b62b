"""Systems, fabrics, scales, environments, and references."""
