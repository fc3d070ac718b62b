"""What the programs are asked, what they print, and the figures in it."""
