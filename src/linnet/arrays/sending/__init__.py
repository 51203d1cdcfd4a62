"""Plans and jobs: expressions and programs that run elsewhere or later."""
