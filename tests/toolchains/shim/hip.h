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

// AMD's square root is off by one place at most, and so is this one, this way or that.
inline float rough_root(float x) {
    unsigned int bits = __builtin_bit_cast(unsigned int, x);
    float root = sqrtf(x);
    if (!(root > 0.0f) || root > 3.4e38f) return root;
    unsigned int hash = bits * 2654435761u >> 16;
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned int, root) + hash % 3 - 1);
}
#define __builtin_amdgcn_sqrtf(x) rough_root(x)
