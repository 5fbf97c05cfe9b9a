"""Command buffers of OpenCL, which pyopencl does not know."""
