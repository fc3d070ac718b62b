"""Whether the suite detects what it is made for: faults are injected into a cluster one by one.

============  ====================================================================================
catalogue.py  the faults, as ``tests/faults/catalogue`` declares them
look.py       one run of the suite, and what it reported
course.py     the campaign: healthy, broken, healed, and so on; its table
============  ====================================================================================
"""
