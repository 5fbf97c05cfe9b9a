// What multiply-adds of matrices do, by lanes that give each other their parts.

#pragma once

#include "machine.h"

namespace machine {

// Types of components: how many a word of 32 bits has, one of them as a number, sums rounded once.
struct f64 {
    typedef double Held;
    typedef double Number;
    static const int parts = 1;
};
struct f32 {
    typedef double Number;
    static const int parts = 1;
    static double of(unsigned int word, int) { return __builtin_bit_cast(float, word); }
    static float rounded(double sum) { return (float)sum; }
};
struct s32 {
    static int rounded(long long sum) { return (int)sum; }
};
struct s8 {
    typedef long long Number;
    static const int parts = 4;
    static Number of(unsigned int word, int part) { return (signed char)(word >> 8 * part); }
};
struct u8 {
    typedef long long Number;
    static const int parts = 4;
    static Number of(unsigned int word, int part) { return (unsigned char)(word >> 8 * part); }
};

inline double power(int exponent) { return __builtin_ldexp(1.0, exponent); }

struct f16 {
    typedef double Number;
    static const int parts = 2;
    static double of(unsigned int word, int part) {
        unsigned int bits = word >> 16 * part & 0xffff, exponent = bits >> 10 & 31;
        double fraction = bits & 1023;
        double size = exponent == 0    ? fraction * power(-24)
                      : exponent == 31 ? (fraction ? __builtin_nan("") : __builtin_inf())
                                       : (fraction + 1024) * power((int)exponent - 25);
        return bits >> 15 ? -size : size;
    }
    // The nearest half, by comparison with all: a search among the 31744 numbers in order.
    static unsigned int bits(double sum) {
        unsigned int sign = __builtin_signbit(sum) ? 0x8000 : 0;
        double size = __builtin_fabs(sum);
        if (size != size) return 0x7e00;
        unsigned int low = 0, high = 0x7c00;  // of(low) <= size
        while (high - low > 1) {
            unsigned int middle = (low + high) / 2;
            (of(middle, 0) <= size ? low : high) = middle;
        }
        double below = of(low, 0), above = high == 0x7c00 ? 65536.0 : of(high, 0);
        if (size >= above) return sign | high;
        double to_below = size - below, to_above = above - size;
        bool up = to_above < to_below || (to_above == to_below && low % 2);
        return sign | (up ? high : low);
    }
};
struct bf16 {
    typedef double Number;
    static const int parts = 2;
    static double of(unsigned int word, int part) {
        unsigned int bits = (word >> 16 * part & 0xffff) << 16;
        float number;
        __builtin_memcpy(&number, &bits, 4);
        return number;
    }
};

// The part of another lane of this warp, of a word or of a double.
inline unsigned int of_lane(unsigned int mine, unsigned int lane) { return exchange(mine, lane); }
inline double of_lane(double mine, unsigned int lane) {
    unsigned int words[2];
    __builtin_memcpy(words, &mine, 8);
    for (int i = 0; i < 2; i++) words[i] = exchange(words[i], lane);
    __builtin_memcpy(&mine, words, 8);
    return mine;
}

template <typename A> typename A::Number number(unsigned int word, int part) {
    return A::of(word, part);
}
template <typename A> double number(double value, int) { return value; }

// Sums that a lane holds, two of a row in each piece of eight rows.
template <typename Sums> struct Held;
template <> struct Held<f32> {
    static double get(const float *d, int i) { return d[i]; }
    static void set(float *d, int i, double sum) { d[i] = (float)sum; }
};
template <> struct Held<f64> {
    static double get(const double *d, int i) { return d[i]; }
    static void set(double *d, int i, double sum) { d[i] = sum; }
};
template <> struct Held<s32> {
    static long long get(const int *d, int i) { return d[i]; }
    static void set(int *d, int i, long long sum) { d[i] = (int)sum; }
};
template <> struct Held<f16> {
    static double get(const unsigned int *d, int i) { return f16::of(d[i / 2], i % 2); }
    static void set(unsigned int *d, int i, double sum) {
        unsigned int shift = 16 * (i % 2);
        d[i / 2] = (d[i / 2] & ~(0xffffu << shift)) | f16::bits(sum) << shift;
    }
};

// d += a @ b of m by 8 sums: PTX's layout of fragments. The inner dimension is gone along in order.
template <int m, int k, typename A, typename B, typename Sums, typename Sum, typename Word>
void multiply_add(Sum *d, const Word *a, const Word *b) {
    const int parts = A::parts, piece = 4 * parts, lines = m / 8, steps = k / piece;
    unsigned int place = thread.x + block_size.x * (thread.y + block_size.y * thread.z);
    unsigned int lane = place % 32, group = lane / 4, pair = lane % 4 * 2;
    Word left[4][lines * steps], right[2][4][steps];
    for (unsigned int other = 0; other < 4; other++) {
        for (int i = 0; i < lines * steps; i++) left[other][i] = of_lane(a[i], 4 * group + other);
        for (int column = 0; column < 2; column++)
            for (int i = 0; i < steps; i++)
                right[column][other][i] = of_lane(b[i], 4 * (pair + column) + other);
    }
    for (int line = 0; line < lines; line++)
        for (int column = 0; column < 2; column++) {
            auto sum = Held<Sums>::get(d, 2 * line + column);
            for (int i = 0; i < k; i++) {
                int step = i / piece, owner = i % piece / parts, part = i % parts;
                sum += number<A>(left[owner][step * lines + line], part) *
                       number<B>(right[column][owner][step], part);
            }
            Held<Sums>::set(d, 2 * line + column, sum);
        }
}

// What lanes hold of AMD's matrices: those of gfx11, of gfx12, and of gfx9 whose waves have 64.
#ifdef WARP_WIDTH
#if WARP_WIDTH == 64
enum { parts = 4, sums = 4, row = 1, rows = 4 };
#elif defined(LAYOUT_GFX12)
enum { parts = 2, sums = 8, row = 1, rows = 8 };
#else
enum { parts = 1, sums = 8, row = 2, rows = 1 };
#endif

// d += a @ b of 16 by 16 sums.
template <int k, typename A, typename B, typename Sums, typename Sum>
void multiply_add_16(Sum *d, const unsigned int *a, const unsigned int *b) {
    const int words = k / A::parts / parts, run = k / parts;
    unsigned int place = thread.x + block_size.x * (thread.y + block_size.y * thread.z);
    unsigned int lane = place % WARP_WIDTH, column = lane % 16;
    unsigned int left[16][parts][words], right[parts][words];
    for (int part = 0; part < parts; part++)
        for (int word = 0; word < words; word++) {
            for (int line = 0; line < 16; line++)
                left[line][part][word] = exchange(a[word], line + 16 * part);
            right[part][word] = exchange(b[word], column + 16 * part);
        }
    for (int i = 0; i < sums; i++) {
        int line = i * row + lane / 16 * rows;
        auto sum = Held<Sums>::get(d, i);
        for (int step = 0; step < k; step++) {
            int part = step / run, at = step % run;
            sum += A::of(left[line][part][at / A::parts], at % A::parts) *
                   B::of(right[part][at / B::parts], at % B::parts);
        }
        Held<Sums>::set(d, i, sum);
    }
}
#endif

}  // namespace machine
