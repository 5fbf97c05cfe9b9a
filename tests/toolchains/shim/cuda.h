// CUDA's names for a program that runs on the machine of `machine.h`, as far as ours use them.

#pragma once

#include "machine.h"
#include "matrices.h"

typedef __SIZE_TYPE__ size_t;

#define __global__
#define __device__
// of the thread of the host that runs the block, so of the block
#define __shared__ thread_local
#define threadIdx machine::thread
#define blockIdx machine::block
#define blockDim machine::block_size
#define gridDim machine::grid_size

inline void __syncthreads() { machine::meet_block(); }
inline void __syncwarp() { machine::meet_warp(); }
inline unsigned int __shfl_sync(unsigned int, unsigned int value, unsigned int lane) {
    return machine::exchange(value, lane);
}
inline void __threadfence_block() {}
inline void __threadfence() {}

// --- functions of floats: those of the C library ---

extern "C" {
void *memcpy(void *, const void *, size_t) noexcept;
#define FUNCTION(name)              \
    double name(double) noexcept; \
    float name##f(float) noexcept;
#define FUNCTION_OF_TWO(name)               \
    double name(double, double) noexcept; \
    float name##f(float, float) noexcept;
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log10)
FUNCTION(log1p)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(asin)
FUNCTION(acos)
FUNCTION(atan)
FUNCTION(sinh)
FUNCTION(cosh)
FUNCTION(tanh)
FUNCTION(asinh)
FUNCTION(acosh)
FUNCTION(atanh)
FUNCTION(erf)
FUNCTION(erfc)
FUNCTION(lgamma)
FUNCTION(tgamma)
FUNCTION(cbrt)
FUNCTION(sqrt)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
FUNCTION(rint)
FUNCTION(fabs)
FUNCTION_OF_TWO(pow)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(hypot)
FUNCTION_OF_TWO(fmod)
FUNCTION_OF_TWO(copysign)
FUNCTION_OF_TWO(nextafter)
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
long double sinl(long double) noexcept;
long double cosl(long double) noexcept;
}
#undef FUNCTION
#undef FUNCTION_OF_TWO

inline double rsqrt(double x) { return (double)(1 / __builtin_sqrtl(x)); }
inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }

// The fraction that is left of a period is exact.
inline double sinpi(double x) {
    return (double)sinl(3.14159265358979323846264338327950288L * (long double)fmod(x, 2.0));
}
inline double cospi(double x) {
    double rest = fabs(fmod(x, 2.0));
    if (rest == 0.5 || rest == 1.5) return 0.0;
    return (double)cosl(3.14159265358979323846264338327950288L * (long double)rest);
}
inline float sinpif(float x) { return (float)sinpi(x); }
inline float cospif(float x) { return (float)cospi(x); }

template <typename T> bool isnan(T x) { return x != x; }
template <typename T> bool isinf(T x) { return __builtin_isinf(x); }
template <typename T> bool isfinite(T x) { return __builtin_isfinite(x); }
template <typename T> bool signbit(T x) { return __builtin_signbit(x); }

// --- integers ---

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned int)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }

inline unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int order) {
    unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned int result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned int)(bytes >> (order >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}

// A float as an integer: the ends of the type where it is outside, 0 of a NaN.
template <typename To, typename From> To saturated(From x, To lowest, To highest) {
    if (x != x) return 0;
    From above = (From)(highest / 2 + 1) * 2;
    return x >= above ? highest : x <= (From)lowest ? lowest : (To)x;
}
#define CONVERSIONS(name, From)                                                                    \
    inline int __##name##2int_rz(From x) { return saturated<int>(x, -2147483647 - 1, 2147483647); } \
    inline unsigned int __##name##2uint_rz(From x) { return saturated(x, 0u, ~0u); }               \
    inline long long __##name##2ll_rz(From x) {                                                    \
        return saturated<long long>(x, -9223372036854775807LL - 1, 9223372036854775807LL);        \
    }                                                                                              \
    inline unsigned long long __##name##2ull_rz(From x) { return saturated(x, 0ULL, ~0ULL); }
CONVERSIONS(float, float)
CONVERSIONS(double, double)
#undef CONVERSIONS

// --- atomic operations: threads change places at meetings alone ---

template <typename T> struct Same { typedef T Type; };

#define ATOMIC(name, changed)                                                            \
    template <typename T> T atomic##name(T *place, typename Same<T>::Type value) { \
        T old = *place;                                                                  \
        *place = changed;                                                                \
        return old;                                                                      \
    }
template <typename T> T wrapping_add(T a, T b) {
    T sum;
    __builtin_add_overflow(a, b, &sum);
    return sum;
}
inline float wrapping_add(float a, float b) { return a + b; }
inline double wrapping_add(double a, double b) { return a + b; }
template <typename T> T wrapping_sub(T a, T b) {
    T difference;
    __builtin_sub_overflow(a, b, &difference);
    return difference;
}
ATOMIC(Add, wrapping_add(old, value))
ATOMIC(Sub, wrapping_sub(old, value))
ATOMIC(Min, value < old ? value : old)
ATOMIC(Max, value > old ? value : old)
ATOMIC(And, old & value)
ATOMIC(Or, old | value)
ATOMIC(Xor, old ^ value)
ATOMIC(Exch, value)
ATOMIC(Inc, old >= value ? 0 : old + 1)
ATOMIC(Dec, old == 0 || old > value ? value : old - 1)
#undef ATOMIC
template <typename T>
T atomicCAS(T *place, typename Same<T>::Type compare, typename Same<T>::Type value) {
    T old = *place;
    if (old == compare) *place = value;
    return old;
}
