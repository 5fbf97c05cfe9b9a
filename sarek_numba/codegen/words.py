"""Words of C++ and of CUDA's headers that programs must not redefine, as tables of dialects.

Names that begin with an underscore are no concern: `codegen.namer` gives none out.
"""

from __future__ import annotations

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq final override import module main std
    """.split()
)
MACROS = frozenset(
    """
    NULL INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL MAXFLOAT EOF BIG_ENDIAN LITTLE_ENDIAN BYTE_ORDER
    CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX
    INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX BUFSIZ RAND_MAX
    EXIT_SUCCESS EXIT_FAILURE SEEK_SET SEEK_CUR SEEK_END P_tmpdir NZERO PATH_MAX NAME_MAX ARG_MAX
    WCHAR_MAX WCHAR_MIN SIZE_MAX linux unix i386 assert errno stdin stdout stderr
    """.split()
)
TYPES = frozenset(
    """
    size_t ptrdiff_t nullptr_t intptr_t uintptr_t uint ushort ulong uchar dim3 int8_t int16_t
    int32_t int64_t uint8_t uint16_t uint32_t uint64_t clock_t time_t libraryPropertyType
    double4_16a double4_32a long4_16a long4_32a longlong4_16a longlong4_32a ulong4_16a ulong4_32a
    ulonglong4_16a ulonglong4_32a
    """.split()
) | frozenset(
    f"{type}{width}"
    for type in (
        "char uchar short ushort int uint long ulong longlong ulonglong float double half".split()
    )
    for width in (1, 2, 3, 4)
)

# Those of CUDA and of C's headers, with the double's name alone where a float's ends in an f.
_FUNCTIONS = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0
    cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma
    fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma log log10 log1p log2 logb modf nan
    nearbyint nextafter norm norm3d norm4d normcdf normcdfinv pow rcbrt remainder remquo rhypot rint
    rnorm rnorm3d rnorm4d round rsqrt scalbln scalbn sin sincos sincospi sinh sinpi sqrt tan tanh
    tgamma trunc y0 y1 yn llrint llround lrint lround isfinite isinf isnan signbit isnormal
    fpclassify isgreater isless isunordered labs llabs llmax llmin ullmax ullmin umax umin min max
    all any ballot clock clock64 printf malloc free memcpy memset memmove syncthreads_and
    syncthreads_count syncthreads_or float2double int2double uint2double ll2double ull2double
    double2int double2uint double2ll double2ull dadd dsub dmul exit abort atoi rand srand div ldiv
    index rindex signal remove rename time read write select link pipe wait
    """.split()
FUNCTIONS = frozenset(_FUNCTIONS) | frozenset(f"{name}f" for name in _FUNCTIONS)
LEADS = (
    "atomic",
    "cuda",
    "CUDA",
    "cu",
    "CU",
    "nv",
    "hip",
    "HIP",
    "FLT_",
    "DBL_",
    "FP_",
    "M_",
    "make_",
    "surf1D",
    "surf2D",
    "surf3D",
    "surfCubemap",
    "tex1D",
    "tex2D",
    "tex3D",
    "texCubemap",
)
