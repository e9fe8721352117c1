/* Sparse group convolution with B-splines of degree 1, fused: a rotated position touches four control points of all.

   Vector lanes run over channels. Windows are handled LANES at a time: their pixels are copied to scratch once, and
   for each output capsule the cells of all positions are found in one sweep over the windows. A window consists of
   quadruples u, iu, -u, -iu, which share one cell: rotating z by 90 degrees permutes the control points. Two rules keep
   a quarter turn the same to the bit: opposite members of a quadruple, and opposite control points of a cell, are added
   first; and a cell is found from |z|, so that z and -z are rounded alike. The mathematics is that of
   sparse_convolution.py, which is the oracle of this file. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vectors.h"

#define MOST_QUADRUPLES 16

/* Sizes, and the geometry of a window. Positions are given as offsets from the first pixel of the window. */
typedef struct {
  int64_t channels, outputs, windows, size, quadruples, centre; /* channels: a multiple of LANES; centre: offset or -1 */
  float slope;                                               /* control points per pixel */
  float x[MOST_QUADRUPLES], y[MOST_QUADRUPLES];              /* the first member of each quadruple */
  int64_t offset[MOST_QUADRUPLES][4];
} window;

/* Where the quadruple falls between control points, for LANES windows. On each axis there is a near one and a far one,
   counted from the centre. Kept are their offsets in the kernel, along both axes since quarter turns swap these; their
   weights; and the slope of the far one's. */
typedef struct {
  int x_row[2][LANES], x_column[2][LANES], y_row[2][LANES], y_column[2][LANES];
  float x_weight[2][LANES], y_weight[2][LANES], x_slope[LANES], y_slope[LANES];
} cell;

/* On one axis, in control points from the centre. */
typedef struct { mask near, far; vec near_weight, far_weight, slope; } between;

INLINE between axis(vec z, float half) {
  vec length = min_(max_(z, -z), ALL(half));
  mask below = __builtin_convertvector(min_(length, ALL(half - 1)), mask); /* towards zero: the floor of a length */
  vec fraction = (length - __builtin_convertvector(below, vec)) + (z - z); /* exact; NaN stays NaN */
  mask negative = z < ALL(0), sign = negative | 1;
  vec inside = select_((fraction > ALL(0)) & (fraction < ALL(1)), ALL(1), ALL(0)); /* flat at a control point */
  mask near = below * sign;
  return (between){near, near + sign, ALL(1) - fraction, fraction, select_(negative, -inside, inside)};
}

INLINE between along_x(const window *l, int64_t u, vec px, vec py) {
  return axis((px * ALL(l->x[u]) + py * ALL(l->y[u])) * ALL(l->slope), (float)(l->size / 2));
}

INLINE between along_y(const window *l, int64_t u, vec px, vec py) {
  return axis((px * ALL(l->y[u]) - py * ALL(l->x[u])) * ALL(l->slope), (float)(l->size / 2));
}

INLINE void keep_axis(between b, int row, int column, int (*at_row)[LANES], int (*at_column)[LANES],
                      float (*weight)[LANES], float *slope) {
  STORE(at_row[0], (vec)(b.near * row)); STORE(at_row[1], (vec)(b.far * row));
  STORE(at_column[0], (vec)(b.near * column)); STORE(at_column[1], (vec)(b.far * column));
  STORE(weight[0], b.near_weight); STORE(weight[1], b.far_weight);
  STORE(slope, b.slope);
}

INLINE void find(const window *l, int64_t u, vec px, vec py, cell *c) {
  const int column = (int)l->channels, row = (int)l->size * column;
  keep_axis(along_x(l, u, px, py), row, column, c->x_row, c->x_column, c->x_weight, c->x_slope);
  keep_axis(along_y(l, u, px, py), row, column, c->y_row, c->y_column, c->y_weight, c->y_slope);
}

/* The four control points of a cell, opposite ones first, as turned by each quarter turn. */
static const int X_OF[4] = {0, 1, 0, 1}, Y_OF[4] = {0, 1, 1, 0};

INLINE void control_points(const cell *c, int64_t w, int at[4][4]) {
  for (int t = 0; t < 4; t++) {
    const int straight = c->x_row[X_OF[t]][w] + c->y_column[Y_OF[t]][w];
    const int turned = c->x_column[X_OF[t]][w] - c->y_row[Y_OF[t]][w];
    at[t][0] = straight; at[t][1] = turned; at[t][2] = -straight; at[t][3] = -turned;
  }
}

/* Rows of a window: the four members of each quadruple, then the centre. */
INLINE int64_t rows(const window *l) { return 4 * l->quadruples + (l->centre >= 0); }

INLINE int64_t offset_of(const window *l, int64_t row) {
  return row < 4 * l->quadruples ? l->offset[row / 4][row % 4] : l->centre;
}

INLINE vec poses_of(const float *plane, int64_t at, int64_t count) {
  if (count == LANES) return LOAD(plane + at);
  vec value = ALL(0);
  memcpy(&value, plane + at, sizeof(float) * count);
  return value;
}

INLINE void copy_patches(const window *l, int64_t n, const float *features, const int64_t *first, int64_t count, float *to) {
  for (int64_t w = 0; w < count; w++)
    for (int64_t r = 0; r < rows(l); r++, to += n)
      memcpy(to, features + (first[w] + offset_of(l, r)) * n, sizeof(float) * n);
}

INLINE void convolve_windows(const window *l, const int64_t n, const int derivatives, const float *features,
                             const int64_t *first, const float *weight, const float *poses, float *scratch, float *out) {
  const int64_t plane = l->outputs * l->windows, kernel = l->size * l->size * n, patch = rows(l) * n;
  const int64_t middle = kernel / 2 - n / 2;
  for (int64_t from = 0; from < l->windows; from += LANES) {
    const int64_t count = l->windows - from < LANES ? l->windows - from : LANES;
    copy_patches(l, n, features, first + from, count, scratch);
    for (int64_t m = 0; m < l->outputs; m++) {
      const float *points = weight + m * kernel + middle;
      const int64_t at = m * l->windows + from;
      vec px = poses_of(poses, at, count), py = poses_of(poses + plane, at, count);
      cell cells[MOST_QUADRUPLES];
      for (int64_t u = 0; u < l->quadruples; u++) find(l, u, px, py, cells + u);
      for (int64_t w = 0; w < count; w++) {
        vec value = ALL(0), by_x = ALL(0), by_y = ALL(0);
        for (int64_t u = 0; u < l->quadruples; u++) {
          const cell *c = cells + u;
          const float *f = scratch + w * patch + 4 * u * n;
          int tap[4][4];
          vec r[4];
          control_points(c, w, tap);
          for (int t = 0; t < 4; t++) {
            vec sum[4] = {};
            for (int64_t i = 0; i < n; i += LANES)
              for (int q = 0; q < 4; q++) sum[q] = fma_(LOAD(points + tap[t][q] + i), LOAD(f + q * n + i), sum[q]);
            r[t] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
          }
          const float gx = c->x_weight[0][w], fx = c->x_weight[1][w], gy = c->y_weight[0][w], fy = c->y_weight[1][w];
          value += (r[0] * ALL(gx * gy) + r[1] * ALL(fx * fy)) + (r[2] * ALL(gx * fy) + r[3] * ALL(fx * gy));
          if (derivatives) {
            const float sx = c->x_slope[w] * l->slope, sy = c->y_slope[w] * l->slope, x = l->x[u], y = l->y[u];
            vec mixed = (r[0] + r[1]) - (r[2] + r[3]); /* by which the slopes of the cell's opposite edges differ */
            vec zx = fma_(mixed, ALL(fy), r[3] - r[0]), zy = fma_(mixed, ALL(fx), r[2] - r[0]);
            by_x = fma_(zx, ALL(sx * x), fma_(zy, ALL(sy * y), by_x));
            by_y = fma_(zx, ALL(sx * y), fma_(zy, ALL(-sy * x), by_y));
          }
        }
        if (l->centre >= 0)
          for (int64_t i = 0; i < n; i += LANES) value = fma_(LOAD(points + i), LOAD(scratch + (w + 1) * patch - n + i), value);
        out[at + w] = sum_lanes(value);
        if (derivatives) {
          out[plane + at + w] = sum_lanes(by_x);
          out[2 * plane + at + w] = sum_lanes(by_y);
        }
      }
    }
  }
}

/* The same for few channels, with lanes over windows: control points are looked up in a table of TABLE values. */
#define TABLE 32

INLINE vec lookup(const float *table, mask at) {
#if defined(__AVX512F__) && LANES == 16
  return (vec)_mm512_permutex2var_ps((__m512)LOAD(table), (__m512i)at, (__m512)LOAD(table + 16));
#elif defined(__AVX2__) && LANES == 8
  return (vec)_mm256_i32gather_ps(table, (__m256i)at, 4);
#else
  vec found;
  for (int i = 0; i < LANES; i++) found[i] = table[at[i]];
  return found;
#endif
}

INLINE void convolve_few_channels(const window *l, const int derivatives, const float *features, const int64_t *first,
                                  const float *weight, const float *poses, float *scratch, float *out) {
  const int64_t n = l->channels, plane = l->outputs * l->windows;
  const int size = (int)l->size, middle = size * size / 2;
  for (int64_t from = 0; from < l->windows; from += LANES) {
    const int64_t count = l->windows - from < LANES ? l->windows - from : LANES;
    memset(scratch, 0, sizeof(float) * rows(l) * n * LANES);
    for (int64_t w = 0; w < count; w++)
      for (int64_t r = 0; r < rows(l); r++)
        for (int64_t i = 0; i < n; i++)
          scratch[(r * n + i) * LANES + w] = features[(first[from + w] + offset_of(l, r)) * n + i];
    for (int64_t m = 0; m < l->outputs; m++) {
      const float *points = weight + m * n * TABLE;
      const int64_t at = m * l->windows + from;
      vec px = poses_of(poses, at, count), py = poses_of(poses + plane, at, count);
      vec value = ALL(0), by_x = ALL(0), by_y = ALL(0);
      for (int64_t u = 0; u < l->quadruples; u++) {
        const between bx = along_x(l, u, px, py), by = along_y(l, u, px, py);
        const mask x[2] = {bx.near, bx.far}, y[2] = {by.near, by.far};
        vec r[4];
        for (int t = 0; t < 4; t++) {
          const mask straight = x[X_OF[t]] * size + y[Y_OF[t]], turned = x[X_OF[t]] - y[Y_OF[t]] * size;
          r[t] = ALL(0);
          for (int64_t i = 0; i < n; i++) {
            const float *f = scratch + (4 * u * n + i) * LANES, *table = points + i * TABLE;
            const int64_t next = n * LANES;
            vec opposite = lookup(table, middle + straight) * LOAD(f) + lookup(table, middle - straight) * LOAD(f + 2 * next);
            vec beside = lookup(table, middle + turned) * LOAD(f + next) + lookup(table, middle - turned) * LOAD(f + 3 * next);
            r[t] += opposite + beside;
          }
        }
        const vec gx = bx.near_weight, fx = bx.far_weight, gy = by.near_weight, fy = by.far_weight;
        value += (r[0] * (gx * gy) + r[1] * (fx * fy)) + (r[2] * (gx * fy) + r[3] * (fx * gy));
        if (derivatives) {
          vec mixed = (r[0] + r[1]) - (r[2] + r[3]), slope = ALL(l->slope);
          vec zx = fma_(mixed, fy, r[3] - r[0]) * (bx.slope * slope), zy = fma_(mixed, fx, r[2] - r[0]) * (by.slope * slope);
          by_x = fma_(zx, ALL(l->x[u]), fma_(zy, ALL(l->y[u]), by_x));
          by_y = fma_(zx, ALL(l->y[u]), fma_(zy, ALL(-l->x[u]), by_y));
        }
      }
      if (l->centre >= 0)
        for (int64_t i = 0; i < n; i++)
          value = fma_(ALL(points[i * TABLE + middle]), LOAD(scratch + (4 * l->quadruples * n + i) * LANES), value);
      memcpy(out + at, &value, sizeof(float) * count);
      if (derivatives) {
        memcpy(out + plane + at, &by_x, sizeof(float) * count);
        memcpy(out + 2 * plane + at, &by_y, sizeof(float) * count);
      }
    }
  }
}

INLINE void convolve_back(const window *l, const int64_t n, const float *features, const int64_t *first, const float *weight,
                          const float *poses, const float *gradient, float *scratch, float *d_weight, float *d_features) {
  const int64_t plane = l->outputs * l->windows, kernel = l->size * l->size * n, patch = rows(l) * n;
  const int64_t middle = kernel / 2 - n / 2;
  float *d_patch = scratch + LANES * patch;
  for (int64_t from = 0; from < l->windows; from += LANES) {
    const int64_t count = l->windows - from < LANES ? l->windows - from : LANES;
    memset(d_patch, 0, sizeof(float) * count * patch);
    copy_patches(l, n, features, first + from, count, scratch);
    for (int64_t m = 0; m < l->outputs; m++) {
      const float *points = weight + m * kernel + middle;
      float *d_points = d_weight + m * kernel + middle;
      const int64_t at = m * l->windows + from;
      vec px = poses_of(poses, at, count), py = poses_of(poses + plane, at, count);
      cell cells[MOST_QUADRUPLES];
      for (int64_t u = 0; u < l->quadruples; u++) find(l, u, px, py, cells + u);
      for (int64_t w = 0; w < count; w++) {
        const float g = gradient[at + w];
        if (g == 0) continue;
        for (int64_t u = 0; u < l->quadruples; u++) {
          const cell *c = cells + u;
          const float *f = scratch + w * patch + 4 * u * n;
          float *df = d_patch + w * patch + 4 * u * n;
          int tap[4][4];
          vec e[4];
          control_points(c, w, tap);
          for (int t = 0; t < 4; t++) e[t] = ALL(g * c->x_weight[X_OF[t]][w] * c->y_weight[Y_OF[t]][w]);
          for (int q = 0; q < 4; q++)
            for (int64_t i = 0; i < n; i += LANES) {
              vec here = LOAD(f + q * n + i);
              for (int t = 0; t < 4; t++) {
                float *d_point = d_points + tap[t][q] + i;
                STORE(d_point, fma_(e[t], here, LOAD(d_point)));
              }
              if (!d_features) continue;
              vec d = LOAD(df + q * n + i);
              for (int t = 0; t < 4; t++) d = fma_(e[t], LOAD(points + tap[t][q] + i), d);
              STORE(df + q * n + i, d);
            }
        }
        if (l->centre >= 0) {
          const float *f = scratch + (w + 1) * patch - n;
          float *df = d_patch + (w + 1) * patch - n;
          for (int64_t i = 0; i < n; i += LANES) {
            STORE(df + i, fma_(ALL(g), LOAD(points + i), LOAD(df + i)));
            STORE(d_points + i, fma_(ALL(g), LOAD(f + i), LOAD(d_points + i)));
          }
        }
      }
    }
    for (int64_t w = 0; d_features && w < count; w++)
      for (int64_t r = 0; r < rows(l); r++) {
        float *d = d_features + (first[from + w] + offset_of(l, r)) * n;
        for (int64_t i = 0; i < n; i += LANES) STORE(d + i, LOAD(d + i) + LOAD(d_patch + w * patch + r * n + i));
      }
  }
}

/* Specialised for some numbers of channels, so that the loops over them unroll. */
#define SPECIALISED(call)                                                                                              \
  switch (l->channels) {                                                                                               \
    case 8: { const int64_t n = 8; call; break; }                                                                         \
    case 16: { const int64_t n = 16; call; break; }                                                                       \
    case 32: { const int64_t n = 32; call; break; }                                                                       \
    default: { const int64_t n = l->channels; call; break; }                                                              \
  }

/* out: (3, outputs, windows): the value and, with derivatives, those by the pose, which the backward pass needs. */
void convolve(const window *l, const float *features, const int64_t *first, const float *weight, const float *poses,
              int derivatives, float *scratch, float *out) {
  if (derivatives) SPECIALISED(convolve_windows(l, n, 1, features, first, weight, poses, scratch, out))
  else SPECIALISED(convolve_windows(l, n, 0, features, first, weight, poses, scratch, out))
}

/* weight: (outputs, channels, TABLE), the rest of each table unused. */
void convolve_few(const window *l, const float *features, const int64_t *first, const float *weight, const float *poses,
                  int derivatives, float *scratch, float *out) {
  if (derivatives) convolve_few_channels(l, 1, features, first, weight, poses, scratch, out);
  else convolve_few_channels(l, 0, features, first, weight, poses, scratch, out);
}

/* gradient: (outputs, windows). d_weight and d_features are zero at the start; d_features may be NULL. */
void convolve_backward(const window *l, const float *features, const int64_t *first, const float *weight,
                       const float *poses, const float *gradient, float *scratch, float *d_weight, float *d_features) {
  SPECIALISED(convolve_back(l, n, features, first, weight, poses, gradient, scratch, d_weight, d_features))
}
