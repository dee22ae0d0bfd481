#include "cost/winograd_time.h"
#include "schedule/winograd_tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kFewestChannels = 48, kSmallestMap = 14;
constexpr double kLeastGain = 0.05;

bool is_affine_in(const Expr& x, int digit) {
  return !(x - Expr::digit(digit) * x.factor_of(digit)).uses(digit);
}

// The width of panels [f floordiv width][c][f mod width]; all features where they are one panel.
int64_t panel_width(const Expr& b, int feature, int64_t features) {
  for (const index::Term& term : b.terms()) {
    int digit = -1;
    if (term.atom.kind == index::Atom::Kind::quotient && term.atom.inner &&
        term.atom.inner->is_digit(&digit) && digit == feature)
      return term.atom.by;
  }
  return features;
}

// Finds the window's and the channels' digits among those of k, by A's strides.
Decision find_roles(const Expr& a, const std::string& name, WinogradShape* shape) {
  const GemmShape& roles = shape->roles;
  auto refuse = [&](const char* code, const char* why) {
    return Decision::no(code, "{}: {}", name, why);
  };
  for (int k : roles.k) {
    int* role = a.factor_of(k) == a.factor_of(roles.y)   ? &shape->ky
                : a.factor_of(k) == a.factor_of(roles.m) ? &shape->kx
                : a.factor_of(k) == 1                    ? &shape->c
                                                         : nullptr;
    if (role && *role < 0) {
      *role = k;
    } else if (roles.window_over(k)) {
      return refuse("winograd-window", "a window with strides or dilation");
    } else {
      return refuse("winograd-layout", "channels do not lie next to each other");
    }
  }
  if (shape->c < 0 || shape->ky < 0 || shape->kx < 0)
    return refuse("winograd-window", "not two dimensions of windows over several channels");
  return Decision::yes();
}

}  // namespace

const WinogradMatrices& winograd_matrices(int m) {
  static const WinogradMatrices kTwo = {4,
                                        {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
                                        {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1},
                                        {1, 1, 1, 0, 0, 1, -1, -1}};
  static const WinogradMatrices kFour = {
      6,
      {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
       0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1},
      {1. / 4, 0, 0, -1. / 6, -1. / 6, -1. / 6, -1. / 6, 1. / 6, -1. / 6, 1. / 24, 1. / 12, 1. / 6,
       1. / 24, -1. / 12, 1. / 6, 0, 0, 1},
      {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}};
  return m == 2 ? kTwo : kFour;
}

double winograd_amplification(int m) {
  const WinogradMatrices& matrices = winograd_matrices(m);
  const int points = matrices.points;
  auto squares = [](const std::vector<double>& matrix, int row, int columns) {
    double sum = 0;
    for (int j = 0; j < columns; ++j) {
      const double x = matrix[static_cast<size_t>(row * columns + j)];
      sum += x * x;
    }
    return sum;
  };
  double worst = 0;
  for (int i = 0; i < m; ++i) {
    double sum = 0;
    for (int p = 0; p < points; ++p) {
      const double a = matrices.output[static_cast<size_t>(i * points + p)];
      sum += a * a * squares(matrices.input, p, points) * squares(matrices.filter, p, 3);
    }
    worst = std::max(worst, sum);
  }
  // Both dimensions are identical: the square under the root; a direct sum has nine terms per
  // channel.
  return worst / 3;
}

double winograd_error(int m, int64_t channels) {
  // Partial sums grow as they are added up, each rounded: sqrt(c/2) times a rounding's sqrt(1/3).
  const double sums = std::sqrt(static_cast<double>(std::max<int64_t>(channels, 2)) / 6);
  return winograd_amplification(m) * std::ldexp(1, -24) * (1 + sums);
}

Decision match_winograd(const GemmShape& roles, const Stage& stage, const target::Target& target,
                        WinogradShape* shape) {
  auto refuse = [&](const char* code, const char* why) {
    return Decision::no(code, "{}: {}", stage.name, why);
  };
  if (stage.kind != hlo::StageKind::conv || roles.type != Type::f32 ||
      stage.values[0].type != Type::f32)
    return refuse("winograd-window", "no convolution in f32");
  if (roles.y < 0 || roles.m < 0 || roles.n < 0 || roles.k.size() != 3)
    return refuse("winograd-window", "not two dimensions of windows over several channels");
  const Expr& a = stage.loads[static_cast<size_t>(roles.a_load)].coordinates[0];
  const Expr& b = stage.loads[static_cast<size_t>(roles.b_load)].coordinates[0];
  const std::vector<int64_t> extents = stage.extents();
  *shape = WinogradShape();
  shape->roles = roles;
  if (Decision found = find_roles(a, stage.name, shape); !found) return found;
  auto extent = [&](int digit) { return extents[static_cast<size_t>(digit)]; };
  if (extent(shape->ky) != 3 || extent(shape->kx) != 3)
    return refuse("winograd-window", "the window is not 3x3");
  for (int digit : {roles.y, roles.m, shape->c, shape->ky, shape->kx})
    if (!is_affine_in(a, digit)) return refuse("winograd-layout", "the input is not a plain image");
  for (int digit : roles.batch) {
    if (b.uses(digit)) return refuse("winograd-window", "groups of features");
    shape->images *= extent(digit);
  }
  shape->height = extent(roles.y);
  shape->width = extent(roles.m);
  shape->channels = extent(shape->c);
  shape->features = extent(roles.n);
  shape->panel = stage.winograd > 0 ? panel_width(b, roles.n, shape->features) : 0;
  shape->y_span = shape->height + 2;
  shape->x_span = shape->width + 2;
  for (const Window& window : roles.windows) {
    const bool lines = window.out == roles.y && window.k == shape->ky;
    if (!lines && (window.out != roles.m || window.k != shape->kx))
      return refuse("winograd-window", "padding of something other than the image");
    if (window.stride != 1 || window.dilation != 1)
      return refuse("winograd-window", "a window with strides or dilation");
    (lines ? shape->y_offset : shape->x_offset) = window.offset;
    (lines ? shape->y_span : shape->x_span) = window.span;
  }
  const int lanes = target.lanes(Type::f32);
  if (stage.position.factor_of(roles.n) != 1)
    return refuse("winograd-layout", "output features do not lie next to each other");
  if (shape->channels % lanes != 0 || shape->features % lanes != 0)
    return refuse("winograd-lanes", "channels that do not fill whole vectors");
  if (shape->channels < kFewestChannels || shape->features < kFewestChannels ||
      shape->height < kSmallestMap || shape->width < kSmallestMap)
    return refuse("winograd-small", "fewer than 48 channels, or a map below 14x14");
  return Decision::yes();
}

namespace {

// Cache lines of the next panel that each register tile fetches every `ku` channels.
int fetched_lines(const Winograd& winograd, const WinogradShape& shape, int64_t tiles,
                  const target::Target& target) {
  if (cost::stays_in_second_cache(winograd, shape, target)) return 0;
  const int64_t count = (tiles + winograd.tile.mr - 1) / winograd.tile.mr;
  const int64_t lines = int64_t{winograd.tile.nv} * winograd.tile.lanes * winograd.tile.ku / 16;
  return static_cast<int>((lines + count - 1) / count);
}

// Calls visit(record, cycles) for all records of F(m x m) with panels of `nv` vectors (0: any).
template <typename Visit>
void for_each_record(const WinogradShape& shape, int m, int nv, const target::Target& target,
                     Visit&& visit) {
  const cost::WinogradTiles all = cost::tiles_of(shape, m);
  const int lanes = target.lanes(Type::f32);
  const int64_t vectors = shape.features / lanes;
  target::Target untuned = target;
  untuned.records = nullptr;  // its records are of products
  for (int width : {4, 3, 2, 1}) {
    if ((nv && width != nv) || vectors % width != 0) continue;
    const int64_t panels = vectors / width;
    for (int64_t blocks = 1; blocks <= all.lines; ++blocks) {
      Winograd candidate;
      candidate.m = m;
      candidate.lines = (all.lines + blocks - 1) / blocks;
      if ((all.lines + candidate.lines - 1) / candidate.lines != blocks) continue;
      const int64_t tiles = candidate.lines * all.across;
      candidate.tile =
          choose_gemm(tiles, shape.features, shape.channels, true, untuned, width, Type::f32);
      candidate.tile.kc = shape.channels;
      candidate.tile.prefetch = fetched_lines(candidate, shape, tiles, target);
      for (int64_t parts = 1; parts <= panels; ++parts) {
        if (panels % parts != 0) continue;
        candidate.columns = panels / parts * width * lanes;
        visit(candidate, cost::winograd_cycles(candidate, shape, target));
      }
    }
  }
}

}  // namespace

Winograd choose_winograd(const WinogradShape& shape, int m, int nv, const target::Target& target) {
  Winograd best;
  double least = std::numeric_limits<double>::max();
  for_each_record(shape, m, nv, target, [&](const Winograd& candidate, double cycles) {
    if (cycles >= least) return;
    least = cycles;
    best = candidate;
  });
  return best;
}

std::vector<Winograd> winograd_candidates(const WinogradShape& shape, const target::Target& target,
                                          size_t most) {
  std::vector<std::pair<double, Winograd>> found;
  // Some of each form and width, so that a wrong prediction excludes none.
  for (int m : {2, 4}) {
    if (winograd_error(m, shape.channels) > kWinogradErrorLimit) continue;
    for (int nv : {4, 3, 2, 1}) {
      std::vector<std::pair<double, Winograd>> few;
      for_each_record(shape, m, nv, target, [&](const Winograd& candidate, double cycles) {
        few.emplace_back(cycles, candidate);
      });
      std::stable_sort(few.begin(), few.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      constexpr size_t kOfAWidth = 3;
      if (few.size() > kOfAWidth) few.resize(kOfAWidth);
      found.insert(found.end(), few.begin(), few.end());
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Winograd> result;
  for (const auto& [cycles, candidate] : found)
    if (result.size() < most) result.push_back(candidate);
  return result;
}

Decision prefer_winograd(const WinogradShape& shape, const target::Target& target,
                         Winograd* winograd) {
  const double limit = cost::direct_cycles(shape, target) * (1 - kLeastGain);
  double least = std::numeric_limits<double>::max();
  bool accurate = false;
  for (int m : {2, 4}) {
    if (winograd_error(m, shape.channels) > kWinogradErrorLimit) continue;
    accurate = true;
    const Winograd candidate = choose_winograd(shape, m, 0, target);
    const double cycles = cost::winograd_cycles(candidate, shape, target);
    if (cycles >= least) continue;
    least = cycles;
    *winograd = candidate;
  }
  if (!accurate)
    return Decision::no("winograd-accuracy", "sums over {} channels would lose too many digits",
                        shape.channels);
  if (least > limit)
    return Decision::no("winograd-slower",
                        "{:.0f} cycles are predicted, {:.0f} for the direct form", least,
                        limit / (1 - kLeastGain));
  return Decision::yes();
}

}  // namespace heddle::schedule
