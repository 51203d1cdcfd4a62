"""Where tasks run: clusters, policies, plans and what they cost."""
