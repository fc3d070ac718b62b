"""What a run showed: cases, figures as rows, why cases failed, and the verdict."""
