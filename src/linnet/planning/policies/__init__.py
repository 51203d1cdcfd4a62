"""Ways of placing tasks on nodes, behind one interface (`placement.Policy`)."""
