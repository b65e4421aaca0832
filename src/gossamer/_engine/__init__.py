"""How a Learner runs: the loop, where the four parts meet; the expansion, the state, and the engines that feed them."""
