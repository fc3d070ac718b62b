"""What a run showed: cases, figures, and the verdict."""
