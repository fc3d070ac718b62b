"""A run as one page for a browser and for paper, which needs nothing but itself."""
