/* Algorithm 1 on SO(2) in 2x2 blocks, fused: votes are made, routed and forgotten in the first-level cache.

   Vector lanes run over windows. For LANES windows at a time the inputs are copied to scratch rows; then, one output
   capsule after the other, votes exist only in scratch. The mathematics and its derivative are those of
   planar_routing.py, which is the oracle of this file. Three rules keep a quarter turn the same to the bit:
   positions are summed one by one and opposite ones added first (pairs); products that make a vote or a scalar
   product of votes are rounded before they are added (the file is compiled with -ffp-contract=off); fused
   multiply-adds are used only where x and y run through the same operations. */

#include <string.h>

#include "vectors.h"

#define K 4               /* positions of a window */
#define MOST_ITERATIONS 3

INLINE vec presence(vec x, vec y) { vec square = x * x + y * y; return square * (ALL(2) - square); }
INLINE vec pairs(const vec *a) { return (a[0] + a[3]) + (a[1] + a[2]); }

/* The constants of numerics.py, in the order of fused_routing.py. */
typedef struct {
  float cancellation, certain, no_evidence, faint_direction, opposed_weights, smallest;
} limits;

/* Sizes and the parameters of sigma. */
typedef struct {
  long capsules, outputs, features, windows, padded;
  float half_alpha, shift;
  limits limit;
} layer;

typedef struct { vec x, y, total, fade; } sums;
typedef struct { vec sx, sy, square, ratio, tanh, floor, mx, my, x, y; } heading;

/* numerics.safe_normalize of a resultant, times a factor. */
INLINE heading direction(sums s, const limits *c) {
  heading h;
  h.floor = max_(s.total, ALL(c->no_evidence)) * ALL(c->cancellation);
  h.sx = s.x / h.floor; h.sy = s.y / h.floor;
  h.square = max_(h.sx * h.sx + h.sy * h.sy, ALL(c->smallest));
  vec z = sqrt_(h.square);
  h.tanh = tanh_(min_(z + z * (z * z), ALL(c->certain)));
  h.ratio = h.tanh / z;
  h.mx = h.sx * h.ratio; h.my = h.sy * h.ratio;
  h.x = h.mx * s.fade; h.y = h.my * s.fade;
  return h;
}

/* Its derivative, with that of the presence of its value. */
INLINE sums direction_back(sums s, heading h, vec dx, vec dy, vec d_presence, const limits *c) {
  vec pull = ALL(4) * d_presence * (ALL(1) - (h.x * h.x + h.y * h.y));
  dx = fma_(h.x, pull, dx); dy = fma_(h.y, pull, dy);
  sums d;
  d.fade = h.mx * dx + h.my * dy;
  dx *= s.fade; dy *= s.fade;
  vec bend = ((ALL(1) - h.tanh * h.tanh) * (ALL(1) + ALL(3) * h.square) - h.ratio) / h.square;
  vec along = bend * (h.sx * dx + h.sy * dy);
  d.x = fma_(h.sx, along, h.ratio * dx) / h.floor;
  d.y = fma_(h.sy, along, h.ratio * dy) / h.floor;
  vec d_floor = -(d.x * h.sx + d.y * h.sy);
  d.total = select_(s.total > ALL(c->no_evidence), d_floor * ALL(c->cancellation), ALL(0));
  return d;
}

/* Agreement of the votes with the pose, and what its derivative needs. */
typedef struct { vec along, distance, gate, present, reached, known, activation; } ending;

INLINE ending finish(heading pose, vec total, vec ex, vec ey, vec count, vec inverse, const layer *l) {
  ending e;
  vec ha = ALL(l->half_alpha);
  e.along = pose.x * ex + pose.y * ey;
  e.distance = (count - e.along) * inverse;
  e.gate = sigmoid_((ALL(l->shift) + ha) - (ha + ha) * e.distance);
  e.present = presence(pose.x, pose.y);
  e.reached = tanh_(total / (ALL(l->limit.opposed_weights) * max_(total, ALL(l->limit.no_evidence))));
  e.known = e.reached * e.reached;
  e.activation = (e.gate * e.present) * e.known;
  return e;
}

static void copy_in(const float *source, long rows, long row, long from, long count, float *to) {
  for (long r = 0; r < rows; r++, to += LANES) {
    if (count == LANES) STORE(to, LOAD(source + r * row + from));
    else {
      STORE(to, ALL(0));
      memcpy(to, source + r * row + from, sizeof(float) * count);
    }
  }
}

/* All inputs of some windows, one after the other; returns how many windows there are. */
static long copy_block(const layer *l, long from, const float *features, const float *poses, const float *activations,
                       const float *voices, const float *counts, float *to) {
  const long n = K * l->capsules, count = l->windows - from < LANES ? l->windows - from : LANES;
  const float *source[] = {features, poses, activations, voices, counts};
  const long rows[] = {K * l->features, 2 * n, n, n, 2};
  for (int i = 0; i < 5; to += rows[i++] * LANES) copy_in(source[i], rows[i], l->windows, from, count, to);
  return count;
}

static void copy_out(const float *from, long rows, float *target, long row, long at, long count) {
  for (long r = 0; r < rows; r++, from += LANES) memcpy(target + r * row + at, from, sizeof(float) * count);
}

#define EVERYWHERE ((1 << K) - 1)
#define AT(alive, k) if ((alive) >> (k) & 1) /* positions where nothing is active add nothing and are skipped */

/* The positions at which any capsule of these windows is active, as bits. */
INLINE int alive_of(const float *a, long capsules) {
  int alive = 0;
  for (int k = 0; k < K; k++) {
    mask any = {0};
    for (long i = 0; i < capsules; i++) any |= LOAD(a + (K * i + k) * LANES) != ALL(0);
    for (int lane = 0; lane < LANES; lane++) if (any[lane]) { alive |= 1 << k; break; }
  }
  return alive;
}

/* The transformations of one pair of capsules at the living positions, before they are normalised. */
INLINE void transformations(const float *wx, const float *wy, long features, const float *feature, int alive, vec *x,
                            vec *y) {
  for (int k = 0; k < K; k++) x[k] = y[k] = ALL(0);
  if (alive == EVERYWHERE) {
    for (long f = 0; f < features; f++)
      for (int k = 0; k < K; k++) {
        vec value = LOAD(feature + (K * f + k) * LANES);
        x[k] = fma_(ALL(wx[f]), value, x[k]);
        y[k] = fma_(ALL(wy[f]), value, y[k]);
      }
    return;
  }
  for (int k = 0; k < K; k++) AT(alive, k)
    for (long f = 0; f < features; f++) {
      vec value = LOAD(feature + (K * f + k) * LANES);
      x[k] = fma_(ALL(wx[f]), value, x[k]);
      y[k] = fma_(ALL(wy[f]), value, y[k]);
    }
}

INLINE vec inverse_length(vec x, vec y, const limits *c) {
  return inverse_sqrt_(fma_(y, y, fma_(x, x, ALL(c->faint_direction * c->faint_direction))));
}

INLINE vec total_of(const float *rows, long capsules) {
  vec sum[K] = {};
  for (long c = 0; c < capsules; c++)
    for (int k = 0; k < K; k++) sum[k] += LOAD(rows + (K * c + k) * LANES);
  return pairs(sum);
}

/* Planes that are kept: poses (2), activation, everyone (2), then x, y, total of every iteration from 0. */
enum { POSE_X, POSE_Y, ACTIVATION, EVERYONE_X, EVERYONE_Y, SUMS };

INLINE sums kept(const float *out, long plane, int iteration) {
  const float *at = out + (SUMS + 3 * iteration) * plane;
  return (sums){LOAD(at), LOAD(at + plane), LOAD(at + 2 * plane), ALL(1)};
}

INLINE void keep(float *out, long plane, int iteration, sums s) {
  float *at = out + (SUMS + 3 * iteration) * plane;
  STORE(at, s.x); STORE(at + plane, s.y); STORE(at + 2 * plane, s.total);
}

INLINE void route_windows(const layer *l, const int iterations, const float *features, const float *weight,
                          const float *poses, const float *activations, const float *voices, const float *counts,
                          float *scratch, float *out) {
  const long n = K * l->capsules, step = l->outputs * l->capsules * l->features, plane = l->outputs * l->padded;
  const limits *c = &l->limit;
  float *feature = scratch, *px = feature + K * l->features * LANES, *py = px + n * LANES, *a = py + n * LANES,
        *s = a + n * LANES, *number = s + n * LANES, *v = number + 2 * LANES;
  for (long from = 0; from < l->windows; from += LANES) {
    copy_block(l, from, features, poses, activations, voices, counts, scratch);
    vec total = total_of(a, l->capsules);
    const int alive = alive_of(a, l->capsules);
    for (long m = 0; m < l->outputs; m++) {
      vec rx[K] = {}, ry[K] = {}, ex[K] = {}, ey[K] = {};
      for (long i = 0; i < l->capsules; i++) {
        const float *w = weight + (m * l->capsules + i) * l->features;
        vec x[K], y[K];
        transformations(w, w + step, l->features, feature, alive, x, y);
        for (int k = 0; k < K; k++) AT(alive, k) {
          long at = (K * i + k) * LANES;
          vec scale = inverse_length(x[k], y[k], c), tx = x[k] * scale, ty = y[k] * scale;
          vec vx = LOAD(px + at) * tx - LOAD(py + at) * ty, vy = LOAD(px + at) * ty + LOAD(py + at) * tx;
          STORE(v + 2 * at, vx); STORE(v + 2 * at + LANES, vy);
          rx[k] = fma_(LOAD(a + at), vx, rx[k]); ry[k] = fma_(LOAD(a + at), vy, ry[k]);
          ex[k] = fma_(LOAD(s + at), vx, ex[k]); ey[k] = fma_(LOAD(s + at), vy, ey[k]);
        }
      }
      float *o = out + m * l->padded + from;
      sums now = {pairs(rx), pairs(ry), total, ALL(1)};
      keep(o, plane, 0, now);
      for (int iteration = 1; iteration <= iterations; iteration++) {
        heading h = direction(now, c);
        now.fade = presence(h.x, h.y);
        vec qx = h.x * ALL(l->half_alpha), qy = h.y * ALL(l->half_alpha), sx[K] = {}, sy[K] = {}, st[K] = {};
        for (long i = 0; i < l->capsules; i++)
          for (int k = 0; k < K; k++) AT(alive, k) {
            long at = (K * i + k) * LANES;
            vec vx = LOAD(v + 2 * at), vy = LOAD(v + 2 * at + LANES);
            vec w = sigmoid_((vx * qx + vy * qy) + ALL(l->shift)) * LOAD(a + at);
            sx[k] = fma_(w, vx, sx[k]); sy[k] = fma_(w, vy, sy[k]); st[k] += w;
          }
        now.x = pairs(sx); now.y = pairs(sy); now.total = pairs(st);
        keep(o, plane, iteration, now);
      }
      heading pose = direction(now, c);
      vec everyone_x = pairs(ex), everyone_y = pairs(ey);
      ending e = finish(pose, now.total, everyone_x, everyone_y, LOAD(number), LOAD(number + LANES), l);
      STORE(o + POSE_X * plane, pose.x); STORE(o + POSE_Y * plane, pose.y); STORE(o + ACTIVATION * plane, e.activation);
      STORE(o + EVERYONE_X * plane, everyone_x); STORE(o + EVERYONE_Y * plane, everyone_y);
    }
  }
}

INLINE void add_lanes(double *sum, vec value) { for (int i = 0; i < LANES; i++) *sum += value[i]; }

/* Windows first..last; `raw` gets the gradients of the unnormalised transformations, (2, m, c, k, width). */
INLINE void route_back(const layer *l, const int iterations, const float *features, const float *weight,
                       const float *poses, const float *activations, const float *voices, const float *counts,
                       const float *out, const float *gradient, long first, long last, long width, float *scratch,
                       float *raw, float *d_poses, float *d_activations, float *d_voices, float *d_counts,
                       double *d_sigma) {
  const long n = K * l->capsules, step = l->outputs * l->capsules * l->features, plane = l->outputs * l->padded;
  const long half = l->outputs * n * width;
  const int entry = 5 + iterations; /* t (2), 1/|t|, v (2), gates */
  const limits *c = &l->limit;
  float *feature = scratch, *px = feature + K * l->features * LANES, *py = px + n * LANES, *a = py + n * LANES,
        *s = a + n * LANES, *number = s + n * LANES, *da = number + 2 * LANES, *ds = da + n * LANES,
        *dpx = ds + n * LANES, *dpy = dpx + n * LANES, *d_number = dpy + n * LANES, *v = d_number + 2 * LANES;
  for (long from = first; from < last; from += LANES) {
    long count = copy_block(l, from, features, poses, activations, voices, counts, scratch);
    memset(da, 0, sizeof(float) * (4 * n + 2) * LANES);
    const int alive = alive_of(a, l->capsules);
    vec total = total_of(a, l->capsules), d_count = ALL(0), d_inverse = ALL(0);
    for (long m = 0; m < l->outputs; m++) {
      const float *o = out + m * l->padded + from, *g = gradient + m * l->padded + from;
      vec d_half_alpha = ALL(0), d_shift = ALL(0), d_alpha = ALL(0), d_beta = ALL(0), qx[MOST_ITERATIONS], qy[MOST_ITERATIONS];
      sums now[MOST_ITERATIONS + 1], d[MOST_ITERATIONS + 1];
      heading h[MOST_ITERATIONS + 1];
      for (int r = 0; r <= iterations; r++) {
        now[r] = kept(o, plane, r);
        if (r == 0) now[r].total = total;
        if (r) now[r].fade = presence(h[r - 1].x, h[r - 1].y);
        h[r] = direction(now[r], c);
        if (r < iterations) { qx[r] = h[r].x * ALL(l->half_alpha); qy[r] = h[r].y * ALL(l->half_alpha); }
      }
      vec ex = LOAD(o + EVERYONE_X * plane), ey = LOAD(o + EVERYONE_Y * plane), inverse = LOAD(number + LANES);
      vec gx = LOAD(g + POSE_X * plane), gy = LOAD(g + POSE_Y * plane), ga = LOAD(g + ACTIVATION * plane);
      ending e = finish(h[iterations], now[iterations].total, ex, ey, LOAD(number), inverse, l);
      vec inner = ((ga * e.present) * e.known) * (e.gate * (ALL(1) - e.gate));
      d_beta = inner; d_alpha = -inner * e.distance;
      vec d_distance = ALL(-2 * l->half_alpha) * inner, d_along = -d_distance * inverse;
      d_count = fma_(d_distance, inverse, d_count);
      d_inverse = fma_(d_distance, LOAD(number) - e.along, d_inverse);
      vec d_ex = d_along * h[iterations].x, d_ey = d_along * h[iterations].y;
      d[iterations] = direction_back(now[iterations], h[iterations], fma_(d_along, ex, gx), fma_(d_along, ey, gy),
                                     (ga * e.gate) * e.known, c);
      /* below no_evidence the sum of weights fades, see numerics.evidence */
      vec faint = ALL(1 / (l->limit.opposed_weights * l->limit.no_evidence));
      d[iterations].total += select_(now[iterations].total < ALL(l->limit.no_evidence),
                                     ((ga * e.gate) * e.present) * (ALL(2) * faint * e.reached * (ALL(1) - e.known)), ALL(0));
      for (int r = iterations; r > 0; r--) { /* through the r-th weights to the sums before them */
        vec dqx = ALL(0), dqy = ALL(0), slopes = ALL(0);
        for (long i = 0; i < l->capsules; i++) {
          vec x[K], y[K];
          if (r == iterations) {
            const float *w = weight + (m * l->capsules + i) * l->features;
            transformations(w, w + step, l->features, feature, alive, x, y);
          }
          for (int k = 0; k < K; k++) AT(alive, k) {
            long at = (K * i + k) * LANES;
            float *row = v + entry * at;
            vec vx, vy;
            if (r == iterations) {
              vec scale = inverse_length(x[k], y[k], c), tx = x[k] * scale, ty = y[k] * scale;
              vx = LOAD(px + at) * tx - LOAD(py + at) * ty; vy = LOAD(px + at) * ty + LOAD(py + at) * tx;
              STORE(row, tx); STORE(row + LANES, ty); STORE(row + 2 * LANES, scale);
              STORE(row + 3 * LANES, vx); STORE(row + 4 * LANES, vy);
              for (int j = 0; j < iterations; j++)
                STORE(row + (5 + j) * LANES, sigmoid_((vx * qx[j] + vy * qy[j]) + ALL(l->shift)));
            } else { vx = LOAD(row + 3 * LANES); vy = LOAD(row + 4 * LANES); }
            vec gate = LOAD(row + (4 + r) * LANES), dw = fma_(d[r].y, vy, fma_(d[r].x, vx, d[r].total));
            vec slope = (dw - gate * dw) * (LOAD(a + at) * gate);
            dqx = fma_(slope, vx, dqx); dqy = fma_(slope, vy, dqy); slopes += slope;
          }
        }
        d_shift += slopes;
        d_half_alpha += dqx * h[r - 1].x + dqy * h[r - 1].y;
        d[r - 1] = direction_back(now[r - 1], h[r - 1], dqx * ALL(l->half_alpha), dqy * ALL(l->half_alpha), d[r].fade, c);
      }
      float *r0 = raw + m * n * width + (from - first);
      for (long i = 0; i < n; i++) {
        if (!(alive >> (i % K) & 1)) {
          STORE(r0 + i * width, ALL(0)); STORE(r0 + half + i * width, ALL(0));
          continue;
        }
        long at = i * LANES;
        const float *row = v + entry * at;
        vec tx = LOAD(row), ty = LOAD(row + LANES), vx = LOAD(row + 3 * LANES), vy = LOAD(row + 4 * LANES);
        vec ai = LOAD(a + at), si = LOAD(s + at);
        vec dvx = fma_(ai, d[0].x, si * d_ex), dvy = fma_(ai, d[0].y, si * d_ey);
        vec d_ai = fma_(d[0].y, vy, fma_(d[0].x, vx, d[0].total));
        for (int r = 1; r <= iterations; r++) {
          vec gate = LOAD(row + (4 + r) * LANES), w = ai * gate, dw = fma_(d[r].y, vy, fma_(d[r].x, vx, d[r].total));
          vec gated = gate * dw, slope = (dw - gated) * w;
          d_ai += gated;
          dvx = fma_(slope, qx[r - 1], fma_(w, d[r].x, dvx)); dvy = fma_(slope, qy[r - 1], fma_(w, d[r].y, dvy));
        }
        STORE(da + at, LOAD(da + at) + select_(ai != ALL(0), d_ai, ALL(0))); /* as at positions that are skipped */
        STORE(ds + at, fma_(d_ey, vy, fma_(d_ex, vx, LOAD(ds + at))));
        vec along = tx * dvx + ty * dvy, across = tx * dvy - ty * dvx;
        STORE(dpx + at, LOAD(dpx + at) + along); STORE(dpy + at, LOAD(dpy + at) + across);
        vec angle = (LOAD(px + at) * across - LOAD(py + at) * along) * LOAD(row + 2 * LANES);
        STORE(r0 + i * width, -ty * angle); STORE(r0 + half + i * width, tx * angle);
      }
      add_lanes(d_sigma, d_half_alpha); add_lanes(d_sigma + 1, d_shift);
      add_lanes(d_sigma + 2, d_alpha); add_lanes(d_sigma + 3, d_beta);
    }
    STORE(d_number, d_count); STORE(d_number + LANES, d_inverse);
    copy_out(da, n, d_activations, l->windows, from, count);
    copy_out(ds, n, d_voices, l->windows, from, count);
    copy_out(dpx, 2 * n, d_poses, l->windows, from, count);
    copy_out(d_number, 2, d_counts, l->windows, from, count);
  }
}

/* Specialised for each number of iterations, so that its loops unroll. */
void route(const layer *l, int iterations, const float *features, const float *weight, const float *poses,
           const float *activations, const float *voices, const float *counts, float *scratch, float *out) {
#define CASE(r) case r: route_windows(l, r, features, weight, poses, activations, voices, counts, scratch, out); break;
  switch (iterations) { CASE(0) CASE(1) CASE(2) CASE(3) }
#undef CASE
}

void route_backward(const layer *l, int iterations, const float *features, const float *weight, const float *poses,
                    const float *activations, const float *voices, const float *counts, const float *out,
                    const float *gradient, long first, long last, long width, float *scratch, float *raw, float *d_poses,
                    float *d_activations, float *d_voices, float *d_counts, double *d_sigma) {
#define CASE(r) case r: route_back(l, r, features, weight, poses, activations, voices, counts, out, gradient, first, last, \
                                   width, scratch, raw, d_poses, d_activations, d_voices, d_counts, d_sigma); break;
  switch (iterations) { CASE(1) CASE(2) CASE(3) }
#undef CASE
}
