"""The sandbox pool: lends each sandbox to one track at a time, and gets every one of them back."""
