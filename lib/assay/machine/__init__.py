"""Facts of this machine: its MPIs, IMB, pip and git, and what a program was built from."""
