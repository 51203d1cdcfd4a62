"""A local page that shows sessions, jobs and bags as they run."""

from linnet.webpage.dashboard import Dashboard, dashboard

__all__ = ["Dashboard", "dashboard"]
