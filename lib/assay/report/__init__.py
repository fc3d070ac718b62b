"""What people read: the terminal, tables, pictures, JUnit."""
