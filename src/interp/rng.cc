// rng-bit-generator with the numbers of XLA's CPU and GPU backends (Three-Fry and Philox of Salmon
// et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), rng and
// rng-get-and-update-state.
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "interp/evaluator.h"
#include "interp/random_bits.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;

std::array<uint32_t, 2> three_fry_2x32(std::array<uint32_t, 2> x, std::array<uint32_t, 2> key) {
  constexpr std::array<std::array<int, 4>, 2> kRotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  const std::array<uint32_t, 3> keys = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda};
  x = {x[0] + keys[0], x[1] + keys[1]};
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x[0] += x[1];
      x[1] = std::rotl(x[1], rotation) ^ x[0];
    }
    x[0] += keys[(group + 1) % 3];
    x[1] += keys[(group + 2) % 3] + group + 1;
  }
  return x;
}

std::array<uint32_t, 4> philox_4x32(std::array<uint32_t, 4> x, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * x[0], b = uint64_t{0xcd9e8d57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};
  }
  return x;
}

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

namespace {

std::array<uint32_t, 2> halves(uint64_t x) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}
uint64_t whole(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

void put_bits(Literal& out, int64_t i, uint64_t bits) {
  Cell cell = cell_from_bits(out.type(), bits);
  store_cells(out.type(), out.mutable_data(), i, 1, &cell);
}

// 64-bit elements take a pair of words each; narrower ones share a pair with a neighbour: along the
// first even dimension, or else along the longest.
uint64_t fill_three_fry(Literal& out, uint64_t key, uint64_t counter) {
  const Ints dims = out.shape().extents();
  if (tensor::type_bits(out.type()) == 64) {
    for (int64_t i = 0; i < out.elems(); ++i) {
      auto x = three_fry_2x32(halves(counter + static_cast<uint64_t>(i)), halves(key));
      put_bits(out, i, whole(x[0], x[1]));
    }
    return counter + static_cast<uint64_t>(out.elems());
  }
  if (dims.empty()) {
    put_bits(out, 0, three_fry_2x32(halves(counter), halves(key))[0]);
    return counter + 1;
  }
  size_t split = dims.size();
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] % 2 == 0) split = d;
  }
  if (split == dims.size()) {
    split = 0;
    for (size_t d = 1; d < dims.size(); ++d) {
      if (dims[d] > dims[split]) split = d;
    }
  }
  Ints half = dims;
  half[split] = (dims[split] + 1) / 2;
  const Ints strides = row_major_strides(half);
  int64_t i = 0;
  for (Walk walk(dims); !walk.done(); walk.next(), ++i) {
    Ints index = walk.index();
    index[split] /= 2;
    uint64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d) place += static_cast<uint64_t>(index[d] * strides[d]);
    auto x = three_fry_2x32(halves(counter + place), halves(key));
    put_bits(out, i, x[static_cast<size_t>(walk[split] % 2)]);
  }
  return counter + static_cast<uint64_t>(product(half));
}

// Elements take the words of successive 128-bit counters in turn: one, or two if 64 bits wide.
// Returns the number of counters used.
uint64_t fill_philox(Literal& out, uint64_t key, uint64_t low, uint64_t high) {
  const int64_t words = tensor::type_bits(out.type()) == 64 ? 2 : 1;
  std::array<uint32_t, 4> x{};
  for (int64_t i = 0; i < out.elems(); ++i) {
    const int64_t word = i * words;
    if (word % 4 == 0) {
      const uint64_t at = low + static_cast<uint64_t>(word / 4);
      const auto a = halves(at), b = halves(high + (at < low));
      x = philox_4x32({a[0], a[1], b[0], b[1]}, halves(key));
    }
    const auto w = static_cast<size_t>(word % 4);
    put_bits(out, i, words == 1 ? x[w] : whole(x[w], x[w + 1]));
  }
  return static_cast<uint64_t>((out.elems() * words + 3) / 4);
}

double uniform(Evaluator& e) {
  return static_cast<double>(mix(e.random().counter++) >> 11) * 0x1p-53;
}

double normal(Evaluator& e) {
  const double u = 1 - uniform(e), v = uniform(e);  // u > 0
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

// The state is {key, counter…}: one word of counter for Three-Fry; for Philox two, or a single one
// whose upper half is the key.
Result<Literal> eval_rng_bit_generator(Evaluator&, const Instr& instr, Operands& operands) {
  using Algorithm = hlo::RngBitGeneratorAttrs::Algorithm;
  const auto algorithm = instr.attrs_as<hlo::RngBitGeneratorAttrs>().algorithm;
  Literal state = operands[0];
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, static_shape(instr.shape().elements()[1]));
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  auto words = state.mutable_values<uint64_t>();
  if (algorithm == Algorithm::three_fry) {
    words[1] = fill_three_fry(out, words[0], words[1]);
  } else {
    const bool short_state = words.size() == 2;
    const uint64_t used = fill_philox(out, words[0], words[1], short_state ? words[0] : words[2]);
    words[1] += used;
    if (!short_state && words[1] < used) ++words[2];
  }
  return Literal::tuple({std::move(state), std::move(out)});
}

// Counter-based: the same numbers in each evaluation.
Result<Literal> eval_rng(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, static_shape(instr.shape()));
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  const Cell a = load_cell(operands[0], 0), b = load_cell(operands[1], 0);
  const bool is_normal = instr.attrs_as<hlo::RngAttrs>().normal;
  void* data = out.mutable_data();
  for (int64_t i = 0; i < out.elems(); ++i) {
    Cell cell;
    if (tensor::is_float(out.type())) {
      cell.f = is_normal ? a.f + b.f * normal(e) : a.f + (b.f - a.f) * uniform(e);
      // Rounding may reach the excluded upper bound.
      if (!is_normal && round_to(out.type(), cell.f) >= b.f) cell.f = a.f;
    } else if (out.type() == Type::pred) {
      cell.u = mix(e.random().counter++) & 1;
    } else {
      const uint64_t range = b.u - a.u;
      cell.u = a.u + (range == 0 ? 0 : mix(e.random().counter++) % range);
    }
    store_cells(out.type(), data, i, 1, &cell);
  }
  return out;
}

// Returns the old state and adds delta to it, as a 128-bit number, low word first.
Result<Literal> eval_rng_state(Evaluator& e, const Instr& instr, Operands&) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  for (int64_t i = 0; i < std::min<int64_t>(out.elems(), 2); ++i)
    put_bits(out, i, e.random().words[i]);
  const auto delta = static_cast<uint64_t>(instr.attrs_as<hlo::RngStateAttrs>().delta);
  e.random().words[0] += delta;
  if (e.random().words[0] < delta) ++e.random().words[1];
  return out;
}

}  // namespace heddle::interp
