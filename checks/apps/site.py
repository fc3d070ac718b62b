"""The applications that a site has named in applications.yaml."""

import reframe as rfm

from assay.checks.site import SiteApplicationCheck
from assay.running.site_applications import site_applications


class SiteApplication(SiteApplicationCheck):
    """One of them, on each fabric of its MPI."""


# Without any there is nothing to run, and ReFrame would say so at each start.
if site_applications():
    rfm.simple_test(SiteApplication)
