"""What people read: the terminal, tables, pages, JUnit."""
