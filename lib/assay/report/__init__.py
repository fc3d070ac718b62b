"""Output for people: the terminal, tables, pages, JUnit."""
