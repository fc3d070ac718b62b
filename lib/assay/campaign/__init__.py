"""Whether the suite sees what it is for: faults are brought into a cluster, one after the other.

============  ====================================================================================
catalogue.py  the faults, as ``tests/faults/catalogue`` declares them
injected.py   brings a fault in, and undoes it
look.py       one run of the suite, and what it said
course.py     the campaign: healthy, broken, healed, and so on
============  ====================================================================================
"""
