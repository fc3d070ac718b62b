"""What people read: terminal, pictures, JUnit."""
