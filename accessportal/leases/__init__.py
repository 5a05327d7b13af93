"""AWS accounts that are lent (seed 004): each has one holder at most, and is cleaned before anybody else gets it."""
