"""Write a GPU kernel once, as an ordinary Python function, and run it on every device."""
