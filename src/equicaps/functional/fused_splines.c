/* Sparse group convolution with B-splines of degree 1, fused: a rotated position touches four control points of all.

   Vector lanes run over channels. Windows are handled LANES at a time: their pixels are copied to scratch once, and
   for each output capsule the cells of all positions are found in one sweep over the windows. A window consists of
   quadruples u, iu, -u, -iu, which share one cell: rotating z by 90 degrees permutes the control points. Two rules keep
   a quarter turn the same to the bit: opposite members of a quadruple, and opposite control points of a cell, are added
   first; and a cell is found from |z|, so that z and -z are rounded alike. The mathematics is that of
   sparse_convolution.py, which is the oracle of this file. */

#include <string.h>

#include "vectors.h"

#define MOST_QUADRUPLES 16

/* Sizes, and the geometry of a window. Positions are given as offsets from the first pixel of the window. */
typedef struct {
  long channels, outputs, windows, size, quadruples, centre; /* channels: a multiple of LANES; centre: offset or -1 */
  float slope;                                               /* control points per pixel */
  float x[MOST_QUADRUPLES], y[MOST_QUADRUPLES];              /* the first member of each quadruple */
  long offset[MOST_QUADRUPLES][4];
} window;

/* Where the quadruple falls between control points, for LANES windows: the nearer and the farther one on each axis,
   counted from the centre, the weights of both, and the derivative of the farther one's. */
typedef struct {
  int near_x[LANES], near_y[LANES], far_x[LANES], far_y[LANES];
  float gx[LANES], gy[LANES], fx[LANES], fy[LANES], slope_x[LANES], slope_y[LANES];
} cell;

INLINE void axis(vec z, float half, int *near, int *far, float *g, float *f, float *slope) {
  vec length = min_(max_(z, -z), ALL(half));
  mask below = __builtin_convertvector(min_(length, ALL(half - 1)), mask); /* towards zero: the floor of a length */
  vec fraction = (length - __builtin_convertvector(below, vec)) + (z - z); /* exact; NaN stays NaN */
  mask negative = z < ALL(0), sign = negative | 1;
  STORE(near, (vec)(below * sign));
  STORE(far, (vec)((below + 1) * sign));
  STORE(f, fraction);
  STORE(g, ALL(1) - fraction);
  vec inside = select_((fraction > ALL(0)) & (fraction < ALL(1)), ALL(1), ALL(0)); /* flat at a control point */
  STORE(slope, select_(negative, -inside, inside));
}

INLINE cell find(const window *l, long quadruple, vec px, vec py) {
  cell c;
  const float x = l->x[quadruple], y = l->y[quadruple], half = (float)(l->size / 2);
  axis((px * ALL(x) + py * ALL(y)) * ALL(l->slope), half, c.near_x, c.far_x, c.gx, c.fx, c.slope_x);
  axis((px * ALL(y) - py * ALL(x)) * ALL(l->slope), half, c.near_y, c.far_y, c.gy, c.fy, c.slope_y);
  return c;
}

/* The four control points of a cell in the order near, far, (near, far), (far, near), turned by q quarter turns. */
INLINE void control_points(const window *l, const cell *c, int w, long at[4][4]) {
  const int x[4] = {c->near_x[w], c->far_x[w], c->near_x[w], c->far_x[w]};
  const int y[4] = {c->near_y[w], c->far_y[w], c->far_y[w], c->near_y[w]};
  const long centre = (l->size / 2) * (l->size + 1), n = l->channels, s = l->size;
  for (int t = 0; t < 4; t++) {
    at[t][0] = (centre + x[t] * s + y[t]) * n;
    at[t][1] = (centre - y[t] * s + x[t]) * n;
    at[t][2] = (centre - x[t] * s - y[t]) * n;
    at[t][3] = (centre + y[t] * s - x[t]) * n;
  }
}

INLINE float sum_lanes(vec v) {
  float s[LANES];
  STORE(s, v);
  for (int step = LANES / 2; step; step /= 2)
    for (int i = 0; i < step; i++) s[i] += s[i + step];
  return s[0];
}

/* Rows of a window: the four members of each quadruple, then the centre. */
INLINE long rows(const window *l) { return 4 * l->quadruples + (l->centre >= 0); }

INLINE long offset_of(const window *l, long row) {
  return row < 4 * l->quadruples ? l->offset[row / 4][row % 4] : l->centre;
}

INLINE vec poses_of(const float *plane, long at, long count) {
  if (count == LANES) return LOAD(plane + at);
  vec value = ALL(0);
  memcpy(&value, plane + at, sizeof(float) * count);
  return value;
}

/* out: (3, outputs, windows): the value and its derivatives by the pose, which the backward pass multiplies with. */
void convolve(const window *l, const float *features, const long *first, const float *weight, const float *poses,
              int derivatives, float *scratch, float *out) {
  const long n = l->channels, plane = l->outputs * l->windows, kernel = l->size * l->size * n, patch = rows(l) * n;
  for (long from = 0; from < l->windows; from += LANES) {
    const long count = l->windows - from < LANES ? l->windows - from : LANES;
    for (long w = 0; w < count; w++)
      for (long r = 0; r < rows(l); r++)
        memcpy(scratch + w * patch + r * n, features + (first[from + w] + offset_of(l, r)) * n, sizeof(float) * n);
    for (long m = 0; m < l->outputs; m++) {
      const float *points = weight + m * kernel;
      const long at = m * l->windows + from;
      vec px = poses_of(poses, at, count), py = poses_of(poses + plane, at, count);
      cell cells[MOST_QUADRUPLES];
      for (long u = 0; u < l->quadruples; u++) cells[u] = find(l, u, px, py);
      for (long w = 0; w < count; w++) {
        vec value = ALL(0), by_x = ALL(0), by_y = ALL(0);
        for (long u = 0; u < l->quadruples; u++) {
          const cell *c = cells + u;
          const float *f = scratch + w * patch + 4 * u * n;
          const float gx = c->gx[w], gy = c->gy[w], fx = c->fx[w], fy = c->fy[w];
          long tap[4][4];
          vec r[4];
          control_points(l, c, w, tap);
          for (int t = 0; t < 4; t++) {
            vec sum[4] = {};
            for (long i = 0; i < n; i += LANES)
              for (int q = 0; q < 4; q++) sum[q] = fma_(LOAD(points + tap[t][q] + i), LOAD(f + q * n + i), sum[q]);
            r[t] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
          }
          value += (r[0] * ALL(gx * gy) + r[1] * ALL(fx * fy)) + (r[2] * ALL(gx * fy) + r[3] * ALL(fx * gy));
          if (derivatives) {
            const float sx = c->slope_x[w] * l->slope, sy = c->slope_y[w] * l->slope, x = l->x[u], y = l->y[u];
            vec zx = ((r[3] - r[0]) * ALL(gy) + (r[1] - r[2]) * ALL(fy)) * ALL(sx);
            vec zy = ((r[2] - r[0]) * ALL(gx) + (r[1] - r[3]) * ALL(fx)) * ALL(sy);
            by_x += zx * ALL(x) + zy * ALL(y);
            by_y += zx * ALL(y) - zy * ALL(x);
          }
        }
        if (l->centre >= 0) {
          const float *middle = points + (l->size / 2) * (l->size + 1) * n, *f = scratch + (w + 1) * patch - n;
          for (long i = 0; i < n; i += LANES) value = fma_(LOAD(middle + i), LOAD(f + i), value);
        }
        out[at + w] = sum_lanes(value);
        if (derivatives) {
          out[plane + at + w] = sum_lanes(by_x);
          out[2 * plane + at + w] = sum_lanes(by_y);
        }
      }
    }
  }
}

/* gradient: (outputs, windows). d_features and d_weight are zero at the start. */
void convolve_backward(const window *l, const float *features, const long *first, const float *weight,
                       const float *poses, const float *gradient, float *scratch, float *d_features, float *d_weight) {
  const long n = l->channels, plane = l->outputs * l->windows, kernel = l->size * l->size * n, patch = rows(l) * n;
  float *d_patch = scratch + LANES * patch;
  for (long from = 0; from < l->windows; from += LANES) {
    const long count = l->windows - from < LANES ? l->windows - from : LANES;
    memset(d_patch, 0, sizeof(float) * count * patch);
    for (long w = 0; w < count; w++)
      for (long r = 0; r < rows(l); r++)
        memcpy(scratch + w * patch + r * n, features + (first[from + w] + offset_of(l, r)) * n, sizeof(float) * n);
    for (long m = 0; m < l->outputs; m++) {
      const float *points = weight + m * kernel;
      float *d_points = d_weight + m * kernel;
      const long at = m * l->windows + from;
      vec px = poses_of(poses, at, count), py = poses_of(poses + plane, at, count);
      cell cells[MOST_QUADRUPLES];
      for (long u = 0; u < l->quadruples; u++) cells[u] = find(l, u, px, py);
      for (long w = 0; w < count; w++) {
        const float g = gradient[at + w];
        if (g == 0) continue;
        for (long u = 0; u < l->quadruples; u++) {
          const cell *c = cells + u;
          const float *f = scratch + w * patch + 4 * u * n;
          float *df = d_patch + w * patch + 4 * u * n;
          const float gx = c->gx[w] * g, fx = c->fx[w] * g, gy = c->gy[w], fy = c->fy[w];
          const vec e[4] = {ALL(gx * gy), ALL(fx * fy), ALL(gx * fy), ALL(fx * gy)};
          long tap[4][4];
          control_points(l, c, w, tap);
          for (int q = 0; q < 4; q++)
            for (long i = 0; i < n; i += LANES) {
              vec here = LOAD(f + q * n + i), d = LOAD(df + q * n + i);
              for (int t = 0; t < 4; t++) {
                float *d_point = d_points + tap[t][q] + i;
                d = fma_(e[t], LOAD(points + tap[t][q] + i), d);
                STORE(d_point, fma_(e[t], here, LOAD(d_point)));
              }
              STORE(df + q * n + i, d);
            }
        }
        if (l->centre >= 0) {
          const long middle = (l->size / 2) * (l->size + 1) * n;
          const float *f = scratch + (w + 1) * patch - n;
          float *df = d_patch + (w + 1) * patch - n;
          for (long i = 0; i < n; i += LANES) {
            STORE(df + i, fma_(ALL(g), LOAD(points + middle + i), LOAD(df + i)));
            STORE(d_points + middle + i, fma_(ALL(g), LOAD(f + i), LOAD(d_points + middle + i)));
          }
        }
      }
    }
    for (long w = 0; w < count; w++)
      for (long r = 0; r < rows(l); r++) {
        float *d = d_features + (first[from + w] + offset_of(l, r)) * n;
        for (long i = 0; i < n; i += LANES) STORE(d + i, LOAD(d + i) + LOAD(d_patch + w * patch + r * n + i));
      }
  }
}
