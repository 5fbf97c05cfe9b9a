// What hiprtc gives a program, as far as ours use it: clang has headers of the functions of floats,
// these are the rest.

#pragma once

struct sarek_thread_index {
    __device__ static unsigned int get_x() { return __builtin_amdgcn_workitem_id_x(); }
    __device__ static unsigned int get_y() { return __builtin_amdgcn_workitem_id_y(); }
    __device__ static unsigned int get_z() { return __builtin_amdgcn_workitem_id_z(); }
    __declspec(property(get = get_x)) unsigned int x;
    __declspec(property(get = get_y)) unsigned int y;
    __declspec(property(get = get_z)) unsigned int z;
};
struct sarek_block_index {
    __device__ static unsigned int get_x() { return __builtin_amdgcn_workgroup_id_x(); }
    __device__ static unsigned int get_y() { return __builtin_amdgcn_workgroup_id_y(); }
    __device__ static unsigned int get_z() { return __builtin_amdgcn_workgroup_id_z(); }
    __declspec(property(get = get_x)) unsigned int x;
    __declspec(property(get = get_y)) unsigned int y;
    __declspec(property(get = get_z)) unsigned int z;
};
struct sarek_block_size {
    __device__ static unsigned int get_x() { return __builtin_amdgcn_workgroup_size_x(); }
    __device__ static unsigned int get_y() { return __builtin_amdgcn_workgroup_size_y(); }
    __device__ static unsigned int get_z() { return __builtin_amdgcn_workgroup_size_z(); }
    __declspec(property(get = get_x)) unsigned int x;
    __declspec(property(get = get_y)) unsigned int y;
    __declspec(property(get = get_z)) unsigned int z;
};
struct sarek_grid_size {
    __device__ static unsigned int get_x() {
        return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
    }
    __device__ static unsigned int get_y() {
        return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
    }
    __device__ static unsigned int get_z() {
        return __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
    }
    __declspec(property(get = get_x)) unsigned int x;
    __declspec(property(get = get_y)) unsigned int y;
    __declspec(property(get = get_z)) unsigned int z;
};
extern const __device__ sarek_thread_index threadIdx;
extern const __device__ sarek_block_index blockIdx;
extern const __device__ sarek_block_size blockDim;
extern const __device__ sarek_grid_size gridDim;
static constexpr int warpSize = __AMDGCN_WAVEFRONT_SIZE;

__device__ inline void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__device__ inline void __threadfence_block() {
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
__device__ inline unsigned int __shfl(unsigned int value, int lane) {
    return __builtin_amdgcn_ds_bpermute(lane << 2, value);
}
__device__ inline unsigned int __popc(unsigned int x) { return __builtin_popcount(x); }
__device__ inline unsigned int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__device__ inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
__device__ inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }

#define SAREK_AGENT __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT
#define SAREK_ATOMIC(name, function, type)                       \
    __device__ inline type atomic##name(type *p, type value) {   \
        return __hip_atomic_##function(p, value, SAREK_AGENT);   \
    }
#define SAREK_ATOMICS(type)           \
    SAREK_ATOMIC(Add, fetch_add, type) \
    SAREK_ATOMIC(Min, fetch_min, type) \
    SAREK_ATOMIC(Max, fetch_max, type) \
    SAREK_ATOMIC(And, fetch_and, type) \
    SAREK_ATOMIC(Or, fetch_or, type)   \
    SAREK_ATOMIC(Xor, fetch_xor, type) \
    SAREK_ATOMIC(Exch, exchange, type) \
    __device__ inline type atomicCAS(type *p, type compare, type value) {                   \
        __hip_atomic_compare_exchange_strong(p, &compare, value, __ATOMIC_RELAXED, SAREK_AGENT); \
        return compare;                                                                     \
    }
SAREK_ATOMICS(int)
SAREK_ATOMICS(unsigned int)
SAREK_ATOMICS(unsigned long long)
SAREK_ATOMIC(Min, fetch_min, long long)
SAREK_ATOMIC(Max, fetch_max, long long)
SAREK_ATOMIC(Exch, exchange, float)
SAREK_ATOMIC(Add, fetch_add, double)
__device__ inline int atomicSub(int *p, int value) {
    return __hip_atomic_fetch_add(p, -value, SAREK_AGENT);
}
__device__ inline unsigned int atomicSub(unsigned int *p, unsigned int value) {
    return __hip_atomic_fetch_add(p, -value, SAREK_AGENT);
}
__device__ inline unsigned int atomicInc(unsigned int *p, unsigned int value) {
    return __builtin_amdgcn_atomic_inc32(p, value, __ATOMIC_RELAXED, "agent");
}
__device__ inline unsigned int atomicDec(unsigned int *p, unsigned int value) {
    return __builtin_amdgcn_atomic_dec32(p, value, __ATOMIC_RELAXED, "agent");
}
