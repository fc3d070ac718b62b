"""What is on this machine: MPIs, IMB, pip and git, and what a program was built from."""
