"""The classes that checks inherit from."""
