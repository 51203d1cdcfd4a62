"""What arrays are made of: nodes, how they are cut into tiles, and the builders that keep their promises."""
