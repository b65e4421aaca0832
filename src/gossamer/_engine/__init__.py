"""How a Learner runs: the loop, the expansion, and the engines that feed them."""
