"""What a cluster is, for its configuration: asked of Slurm, of a node, and of its MPIs."""
