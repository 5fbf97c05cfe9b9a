// CUDA C++ as a host compiler takes it, for the fake device of tests: no warp operations.
// A block's threads run one after the other; those of a kernel with barriers are fibers.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __constant__ static const
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __restrict__ __restrict

struct fake_dim3 {
    unsigned int x, y, z;
};
static fake_dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

template <class T, class U> static T atomicAdd(T *p, U v) { T old = *p; *p = old + (T)v; return old; }
template <class T, class U> static T atomicSub(T *p, U v) { T old = *p; *p = old - (T)v; return old; }
template <class T, class U> static T atomicExch(T *p, U v) { T old = *p; *p = (T)v; return old; }
template <class T, class U> static T atomicMin(T *p, U v) { T old = *p; if ((T)v < old) *p = (T)v; return old; }
template <class T, class U> static T atomicMax(T *p, U v) { T old = *p; if ((T)v > old) *p = (T)v; return old; }
template <class T, class U> static T atomicAnd(T *p, U v) { T old = *p; *p = old & (T)v; return old; }
template <class T, class U> static T atomicOr(T *p, U v) { T old = *p; *p = old | (T)v; return old; }
template <class T, class U> static T atomicXor(T *p, U v) { T old = *p; *p = old ^ (T)v; return old; }
template <class T, class C, class U> static T atomicCAS(T *p, C c, U v) { T old = *p; if (old == (T)c) *p = (T)v; return old; }
static inline void __threadfence() {}
static inline void __threadfence_block() {}

template <class I, class F> static I fake_saturate(F x) {
    const double low = -std::ldexp(1.0, 8 * sizeof(I) - 1), high = -low;
    const bool is_unsigned = I(-1) > I(0);
    if (x != x) return 0;
    if (is_unsigned) return x <= 0 ? 0 : x >= 2 * high ? I(-1) : (I)x;
    if (x <= low) return I(1ull << (8 * sizeof(I) - 1));
    return x >= high ? I(~(1ull << (8 * sizeof(I) - 1))) : (I)x;
}
#define FAKE_CONVERT(from, F)                                                             \
    static inline int __##from##2int_rz(F x) { return fake_saturate<int>(x); }                \
    static inline unsigned int __##from##2uint_rz(F x) { return fake_saturate<unsigned>(x); } \
    static inline long long __##from##2ll_rz(F x) { return fake_saturate<long long>(x); }     \
    static inline unsigned long long __##from##2ull_rz(F x) {                                 \
        return fake_saturate<unsigned long long>(x);                                          \
    }
FAKE_CONVERT(float, float)
FAKE_CONVERT(double, double)

// --- blocks ---

static ucontext_t fake_scheduler;
static ucontext_t *fake_fiber;

static inline void __syncthreads() { swapcontext(fake_fiber, &fake_scheduler); }

template <class... A, std::size_t... I>
static void fake_call(void (*kernel)(A...), void **given, std::index_sequence<I...>) {
    kernel(*(std::remove_cv_t<std::remove_reference_t<A>> *)given[I]...);
}

static void (*fake_body)();
static bool *fake_done;

static void fake_enter() {
    fake_body();
    *fake_done = true;
}

static fake_dim3 fake_position(unsigned int k, fake_dim3 of) {
    return {k % of.x, k / of.x % of.y, k / of.x / of.y};
}

template <class F> static void fake_block(F &&body, bool meets) {
    const unsigned int count = blockDim.x * blockDim.y * blockDim.z;
    if (!meets) {
        for (unsigned int k = 0; k < count; k++) {
            threadIdx = fake_position(k, blockDim);
            body();
        }
        return;
    }
    static std::remove_reference_t<F> *now;
    now = &body;
    fake_body = [] { (*now)(); };
    const std::size_t stack = 128 << 10;
    std::vector<ucontext_t> fibers(count);
    std::vector<char> memory(count * stack);
    std::vector<char> done(count, 0);
    for (unsigned int k = 0; k < count; k++) {
        getcontext(&fibers[k]);
        fibers[k].uc_stack.ss_sp = &memory[k * stack];
        fibers[k].uc_stack.ss_size = stack;
        fibers[k].uc_link = &fake_scheduler;
        makecontext(&fibers[k], fake_enter, 0);
    }
    for (unsigned int left = count; left;) {
        for (unsigned int k = 0; k < count; k++) {
            if (done[k]) continue;
            threadIdx = fake_position(k, blockDim);
            fake_fiber = &fibers[k];
            fake_done = (bool *)&done[k];
            swapcontext(&fake_scheduler, &fibers[k]);
            left -= done[k];
        }
    }
}

template <class... A>
static void fake_launch(void (*kernel)(A...), const unsigned int *sizes, void **given, bool meets) {
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    const unsigned int blocks = gridDim.x * gridDim.y * gridDim.z;
    for (unsigned int k = 0; k < blocks; k++) {
        blockIdx = fake_position(k, gridDim);
        fake_block([&] { fake_call(kernel, given, std::index_sequence_for<A...>()); }, meets);
    }
}

template <class... A> static int fake_sizes(void (*)(A...), int *sizes) {
    const int found[] = {(int)sizeof(A)..., 0};
    for (std::size_t k = 0; k < sizeof...(A); k++) sizes[k] = found[k];
    return sizeof...(A);
}

#define FAKE_DYNAMIC_BYTES (256 << 10)
#define FAKE_KERNEL(name, meets)                                                            \
    extern "C" void fake_launch_##name(const unsigned int *sizes, void **given) {           \
        fake_launch(name, sizes, given, meets);                                             \
    }                                                                                       \
    extern "C" int fake_sizes_##name(int *sizes) { return fake_sizes(name, sizes); }
