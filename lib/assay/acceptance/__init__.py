"""The acceptance of a machine by a contract that its buyer and its vendor sign."""
