"""Find out what a cluster is, for its configuration: from Slurm, from a node, and from its MPIs."""
