/* Vectors of LANES floats and the functions on them that the kernels share, in AVX-512, AVX2 or plain C.

   Compiled with -ffp-contract=off: products are rounded before they are added, except where fma_ is written. */

#pragma once

#ifndef LANES
#define LANES 8
#endif

int lanes(void) { return LANES; }

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int mask __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define ALL(x) ((vec){0} + (float)(x))
#define LOAD(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && LANES == 16
#include <immintrin.h>
INLINE vec fma_(vec a, vec b, vec c) { return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
INLINE vec sqrt_(vec a) { return (vec)_mm512_sqrt_ps((__m512)a); }
/* An estimate to 14 bits and one Newton step, where a division would take ten times as long. */
INLINE vec inverse_(vec a) {
  vec y = (vec)_mm512_rcp14_ps((__m512)a);
  return fma_(y, fma_(-a, y, (vec){0} + 1.f), y);
}
INLINE vec inverse_sqrt_(vec a) {
  vec y = (vec)_mm512_rsqrt14_ps((__m512)a), h = y * ((vec){0} + .5f);
  return fma_(h, fma_(-(a * y), y, (vec){0} + 1.f), y);
}
#define FAST_INVERSE
INLINE vec max_(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vec min_(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
#elif defined(__AVX2__) && defined(__FMA__) && LANES == 8
#include <immintrin.h>
INLINE vec fma_(vec a, vec b, vec c) { return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
INLINE vec sqrt_(vec a) { return (vec)_mm256_sqrt_ps((__m256)a); }
INLINE vec max_(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE vec min_(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
#else
INLINE vec fma_(vec a, vec b, vec c) { for (int i = 0; i < LANES; i++) a[i] = __builtin_fmaf(a[i], b[i], c[i]); return a; }
INLINE vec sqrt_(vec a) { for (int i = 0; i < LANES; i++) a[i] = __builtin_sqrtf(a[i]); return a; }
INLINE vec max_(vec a, vec b) { for (int i = 0; i < LANES; i++) a[i] = a[i] > b[i] ? a[i] : b[i]; return a; }
INLINE vec min_(vec a, vec b) { for (int i = 0; i < LANES; i++) a[i] = a[i] < b[i] ? a[i] : b[i]; return a; }
#endif

#ifndef FAST_INVERSE
INLINE vec inverse_(vec a) { return ((vec){0} + 1.f) / a; }
INLINE vec inverse_sqrt_(vec a) { return ((vec){0} + 1.f) / sqrt_(a); }
#endif

INLINE vec select_(mask m, vec yes, vec no) { return (vec)((m & (mask)yes) | (~m & (mask)no)); }

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with x = n ln 2 + r: no cancellation near 0. For |x| < 87. */
INLINE vec expm1_parts(vec x, vec *power) {
  const float round = 12582912.f; /* 1.5 * 2^23: adding it rounds to a whole number, found in the low bits */
  x = min_(max_(x, ALL(-87)), ALL(87));
  vec shifted = fma_(x, ALL(1.44269504088896341f), ALL(round)), n = shifted - ALL(round);
  vec r = fma_(n, ALL(2.12194440e-4f), fma_(n, ALL(-0.693359375f), x));
  vec y = ALL(1.f / 5040);
  y = fma_(y, r, ALL(1.f / 720));
  y = fma_(y, r, ALL(1.f / 120));
  y = fma_(y, r, ALL(1.f / 24));
  y = fma_(y, r, ALL(1.f / 6));
  y = fma_(y, r, ALL(.5f));
  *power = (vec)(((mask)shifted << 23) + (mask)ALL(1));
  return fma_(y, r * r, r);
}
INLINE vec exp_(vec x) { vec power, rest = expm1_parts(x, &power); return fma_(power, rest, power); }
INLINE vec expm1_(vec x) { vec power, rest = expm1_parts(x, &power); return fma_(power, rest, power - ALL(1)); }
INLINE vec sigmoid_(vec x) { return inverse_(ALL(1) + exp_(-x)); }
INLINE vec tanh_(vec x) { vec m = expm1_(ALL(-2) * x); return -m / (ALL(2) + m); }

#if defined(__AVX512F__) && LANES == 16
INLINE float sum_lanes(vec v) { return _mm512_reduce_add_ps((__m512)v); }
#else
INLINE float sum_lanes(vec v) {
  float s[LANES];
  STORE(s, v);
  for (int step = LANES / 2; step; step /= 2)
    for (int i = 0; i < step; i++) s[i] += s[i + step];
  return s[0];
}
#endif
