// What CUDA's products of matrices use of Hopper, on the machine of `machine.h`: barriers that
// count bytes, tensor copies, `wgmma` with its descriptors and the 128-byte swizzle, as the PTX ISA
// describes them. Copies are done when they are given. There are no clusters.

#pragma once

#include "machine.h"
#include "matrices.h"

#define __grid_constant__
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

struct __attribute__((aligned(64))) TensorMap {
    unsigned char *data;
    unsigned long long sizes[3], strides[2];  // in elements; in bytes
    unsigned int box[2], bytes;  // in elements; of one element
    unsigned int unused[15];
};
static_assert(sizeof(TensorMap) == 128, "as CUtensorMap");

namespace machine {

inline thread_local unsigned char *shared;
const unsigned int SHARED_AT = 16;  // where dynamic shared memory begins: no multiple of 1024

struct Barrier {
    short pending, count;
    int phase_and_bytes;  // twice the bytes that are to come, plus the parity of the phase
};

inline Barrier &barrier_at(unsigned int address) {
    return *(Barrier *)(shared + (address - SHARED_AT));
}

inline void settle(Barrier &barrier) {
    if (barrier.pending != 0 || barrier.phase_and_bytes >> 1 != 0) return;
    barrier.phase_and_bytes ^= 1;
    barrier.pending = barrier.count;
}

inline unsigned int swizzled(unsigned int address) { return address ^ (address >> 7 & 7) << 4; }

// An operand's element in memory, and the type of sums of its products.
template <typename T> struct Stored;
template <> struct Stored<f16> { typedef unsigned short Word; typedef float Sum; };
template <> struct Stored<bf16> { typedef unsigned short Word; typedef float Sum; };
template <> struct Stored<s8> { typedef unsigned char Word; typedef int Sum; };
template <> struct Stored<u8> { typedef unsigned char Word; typedef int Sum; };

// Where a descriptor has an element: by its index along m or n, and along k.
template <typename T, bool is_outer>
typename Stored<T>::Sum element(
    unsigned long long descriptor, unsigned int outer, unsigned int deep) {
    typedef typename Stored<T>::Word Word;
    unsigned int start = (descriptor & 0x3FFF) << 4, leading = (descriptor >> 16 & 0x3FFF) << 4;
    unsigned int stride = (descriptor >> 32 & 0x3FFF) << 4;
    unsigned int offset =
        is_outer ? outer / 64 * leading + outer % 64 * 2 + deep / 8 * stride + deep % 8 * 128
                 : outer / 8 * stride + outer % 8 * 128 + deep * (unsigned int)sizeof(Word);
    return T::of(*(Word *)(shared + (swizzled(start + offset) - SHARED_AT)), 0);
}

template <typename A, typename B, bool a_outer, bool b_outer, typename Sum, int count>
void multiply(Sum (&d)[count], unsigned long long a, unsigned long long b, int add) {
    const int depth = 32 / sizeof(typename Stored<A>::Word);
    unsigned int lane = thread.x % 32, row0 = thread.x % 128 / 32 * 16 + lane / 4;
    for (int i = 0; i < count; i++) {
        unsigned int row = row0 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        Sum sum = add ? d[i] : 0;
        for (int k = 0; k < depth; k++)
            sum += element<A, a_outer>(a, row, k) * element<B, b_outer>(b, column, k);
        d[i] = sum;
    }
}

}  // namespace machine

inline unsigned int address_of(void *memory) {
    machine::shared = (unsigned char *)memory;
    return machine::SHARED_AT;
}
inline void barrier_make(unsigned int barrier, unsigned int arrivals) {
    machine::barrier_at(barrier) = {(short)arrivals, (short)arrivals, 0};
}
inline void barriers_made() {}
inline void barrier_arrive(unsigned int at) {
    machine::Barrier &barrier = machine::barrier_at(at);
    --barrier.pending;
    machine::settle(barrier);
}
inline void barrier_expect(unsigned int at, unsigned int bytes) {
    machine::barrier_at(at).phase_and_bytes += 2 * (int)bytes;
    barrier_arrive(at);
}
inline void barrier_wait(unsigned int at, unsigned int parity) {
    for (bool again = false; (machine::barrier_at(at).phase_and_bytes & 1) == (int)parity;) {
        machine::pause(again);
        again = true;
    }
}
inline void copy_tile(unsigned int target, const TensorMap *map, unsigned int at, int x, int y, int z) {
    unsigned int size = map->bytes;
    for (unsigned int row = 0; row < map->box[1]; row++)
        for (unsigned int column = 0; column < map->box[0]; column++) {
            long long there[3] = {x + (long long)column, y + (long long)row, z};
            bool is_inside = true;
            for (int i = 0; i < 3; i++)
                is_inside &= there[i] >= 0 && there[i] < (long long)map->sizes[i];
            const unsigned char *from = map->data + there[0] * size +
                                        there[1] * (long long)map->strides[0] +
                                        there[2] * (long long)map->strides[1];
            unsigned int to = target + row * map->box[0] * size + column * size;
            for (unsigned int i = 0; i < size; i++)
                machine::shared[machine::swizzled(to + i) - machine::SHARED_AT] =
                    is_inside ? from[i] : 0;
        }
    machine::Barrier &barrier = machine::barrier_at(at);
    barrier.phase_and_bytes -= 2 * (int)(map->box[0] * map->box[1] * size);
    machine::settle(barrier);
}
template <int count> void give_registers() {}
template <int count> void take_registers() {}
inline void multiply_begins() {}
inline void multiply_given() {}
template <int pending> void multiply_done() {}
inline unsigned long long descriptor(unsigned int start, unsigned int leading, unsigned int stride) {
    return (start & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}
