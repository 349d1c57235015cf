"""Ways of learning the map tau(s) = M Phi(s) + b from many tasks, one a module."""
