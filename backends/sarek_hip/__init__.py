"""AMD devices through HIP C++: the text of a kernel. There is no runtime yet.

Importing this package opens nothing.
"""
