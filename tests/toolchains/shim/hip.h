// HIP's names for a program that runs on the machine of `machine.h`: CUDA's, and some of its own.
// Warps have 32 or 64 threads, as the program is made for; it states WARP_WIDTH.

#pragma once

#include "cuda.h"

static const int warpSize = WARP_WIDTH;

inline unsigned int __shfl(unsigned int value, unsigned int lane) {
    return machine::exchange(value, lane);
}
#define __builtin_amdgcn_fence(order, scope)
#define __builtin_amdgcn_wave_barrier() machine::meet_warp()
