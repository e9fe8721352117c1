/* The sums of local_moments.py, for one centre after the other and LANES points at a time.

   Nothing but the result is written: distances and bumps of a centre's points never leave the registers. */

#include <stdint.h>
#include "vectors.h"

#define MOST_RINGS 6
#define MONOMIALS 10

static const float BINOMIAL[MOST_RINGS + 2][MOST_RINGS] = { /* n = rings + 1: (n over 0), (n over 1), ... */
    {0}, {1}, {1, 2}, {1, 3, 3}, {1, 4, 6, 4}, {1, 5, 10, 10, 5}, {1, 6, 15, 20, 15, 6}, {1, 7, 21, 35, 35, 21}};

INLINE int any_(mask m) {
#if defined(__AVX512F__) && LANES == 16
  return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#elif defined(__AVX2__) && defined(__FMA__) && LANES == 8
  return _mm256_movemask_ps((__m256)m) != 0;
#else
  int found = 0;
  for (int i = 0; i < LANES; i++) found |= m[i];
  return found != 0;
#endif
}

INLINE float total(vec v) {
  float sum = 0;
  for (int half = LANES / 2; half; half /= 2)
    for (int i = 0; i < half; i++) v[i] += v[i + half];
  sum = v[0];
  return sum;
}

INLINE void centre_moments(const int rings, int64_t points, float inverse_radius, const float *c, const float *planes,
                           float *out) {
  vec sums[MOST_RINGS][MONOMIALS];
  for (int k = 0; k < rings; k++)
    for (int q = 0; q < MONOMIALS; q++) sums[k][q] = ALL(0);
  const vec one = ALL(1), zero = ALL(0), scale = ALL(inverse_radius), cx = ALL(c[0]), cy = ALL(c[1]), cz = ALL(c[2]);
  for (int64_t j = 0; j < points; j += LANES) {
    vec x = (LOAD(planes + j) - cx) * scale, y = (LOAD(planes + points + j) - cy) * scale;
    vec z = (LOAD(planes + 2 * points + j) - cz) * scale;
    vec g = one - (x * x + y * y + z * z);
    if (!any_(g > zero)) continue;
    g = max_(g, zero);
    vec h = one - g, w = LOAD(planes + 3 * points + j);
    vec shells[MOST_RINGS], power = w * g * g; /* shells[k]: first its power of g, then the bump */
    for (int k = rings - 1; k >= 0; k--, power = power * g) shells[k] = power;
    vec rest = h;
    for (int k = 1; k < rings; k++, rest = rest * h) shells[k] = shells[k] * rest * ALL(BINOMIAL[rings + 1][k]);
    vec u[MONOMIALS] = {one, x, y, z, x * x, y * y, z * z, x * y, x * z, y * z};
    for (int k = 0; k < rings; k++)
      for (int q = 0; q < MONOMIALS; q++) sums[k][q] = fma_(shells[k], u[q], sums[k][q]);
  }
  for (int k = 0; k < rings; k++)
    for (int q = 0; q < MONOMIALS; q++) out[k * MONOMIALS + q] = total(sums[k][q]);
}

/* centres (batch, count, 3), planes (batch, 4, points): x, y, z and weight; out (batch, count, rings, MONOMIALS). */
void local_moments(int64_t batch, int64_t count, int64_t points, int64_t rings, float inverse_radius,
                   const float *centres, const float *planes, float *out) {
  for (int64_t b = 0; b < batch; b++)
    for (int64_t m = 0; m < count; m++) {
      const float *c = centres + 3 * (b * count + m), *p = planes + 4 * b * points;
      float *o = out + (b * count + m) * rings * MONOMIALS;
      switch (rings) { /* so that loops over rings are unrolled */
        case 1: centre_moments(1, points, inverse_radius, c, p, o); break;
        case 2: centre_moments(2, points, inverse_radius, c, p, o); break;
        case 3: centre_moments(3, points, inverse_radius, c, p, o); break;
        case 4: centre_moments(4, points, inverse_radius, c, p, o); break;
        case 5: centre_moments(5, points, inverse_radius, c, p, o); break;
        default: centre_moments(6, points, inverse_radius, c, p, o); break;
      }
    }
}
