#include "kernel/mma.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "kernel/scalar.h"

namespace heddle::kernel {
namespace {

// "c1 r8 | c2": a bit each.
MmaMap parse_map(std::string_view text) {
  MmaMap map;
  std::vector<MmaPlace>* bits = &map.register_bits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '|') {
      bits = &map.lane_bits;
      continue;
    }
    char kind = text[i];
    int weight = 0;
    while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') {
      weight = weight * 10 + (text[++i] - '0');
    }
    HEDDLE_CHECK(weight > 0 && (kind == 'r' || kind == 'c' || kind == 'b'), "map {}", text);
    MmaPlace place;
    (kind == 'r' ? place.row : kind == 'c' ? place.column : place.batch) = weight;
    bits->push_back(place);
  }
  return map;
}

std::vector<MmaDescriptor> make_table() {
  std::vector<MmaDescriptor> table;
#define HEDDLE_MMA(name, feature, lanes, batch, m, n, k, d, a, b, map_d, map_a, map_b, numerics) \
  table.push_back({#name, feature, lanes, batch, m, n, k, Type::d, Type::a, Type::b,             \
                   parse_map(map_d), parse_map(map_a), parse_map(map_b), MmaNumerics::numerics});
#include "kernel/mma.def"
  return table;
}

// Elements of one operand by [batch][row][column], from [lane][register].
std::vector<uint64_t> gather(const MmaMap& map, int lanes, int rows, int columns, int batch,
                             const uint64_t* values) {
  std::vector<uint64_t> result(static_cast<size_t>(batch * rows * columns));
  for (int lane = 0; lane < lanes; ++lane) {
    for (int reg = 0; reg < map.registers(); ++reg) {
      MmaPlace at = map.at(lane, reg);
      result[static_cast<size_t>((at.batch * rows + at.row) * columns + at.column)] =
          values[lane * map.registers() + reg];
    }
  }
  return result;
}

double operand(Type type, uint64_t bits, MmaNumerics numerics) {
  if (numerics == MmaNumerics::tf32) bits &= ~uint64_t{0x1fff};
  const double x = tensor::float_from_bits(type, bits);
  constexpr double kLeastNormal = std::numeric_limits<float>::min();  // of bf16, too
  return numerics == MmaNumerics::flushes && std::abs(x) < kLeastNormal ? 0 : x;
}

}  // namespace

MmaPlace MmaMap::at(int lane, int reg) const {
  MmaPlace place;
  auto add = [&](const std::vector<MmaPlace>& bits, int word) {
    for (size_t i = 0; i < bits.size(); ++i) {
      if (!(word >> i & 1)) continue;
      place.batch += bits[i].batch;
      place.row += bits[i].row;
      place.column += bits[i].column;
    }
  };
  add(register_bits, reg);
  add(lane_bits, lane);
  return place;
}

std::span<const MmaDescriptor> mma_table() {
  static const auto* const kTable = new std::vector<MmaDescriptor>(make_table());
  return *kTable;
}

const MmaDescriptor* find_mma(std::string_view name) {
  auto table = mma_table();
  auto it = std::find_if(table.begin(), table.end(), [&](auto& row) { return row.name == name; });
  return it == table.end() ? nullptr : &*it;
}

const MmaDescriptor* plain_mma() {
  static const MmaDescriptor* const kPlain = find_mma("fma");
  return kPlain;
}

int64_t mma_row(const MmaDescriptor& mma) { return &mma - mma_table().data(); }

Type MmaDescriptor::word() const {
  const int bits = k * tensor::type_bits(a);
  HEDDLE_CHECK(is_dot() && bits == k * tensor::type_bits(b) && (bits == 32 || bits == 64), "{}",
               name);
  return bits == 32 ? Type::u32 : Type::u64;
}

Type MmaDescriptor::fragment_type(Type type) {
  if (tensor::type_bits(type) >= 8) return type;
  return tensor::is_signed_integer(type) ? Type::s8 : Type::u8;
}

uint64_t execute_dot(const MmaDescriptor& mma, uint64_t a, uint64_t b, uint64_t c) {
  const int bits = tensor::type_bits(mma.a);
  double sum = mma.numerics == MmaNumerics::wraps ? 0 : operand(mma.d, c, mma.sums());
  for (int i = 0; i < mma.k; ++i) {
    const uint64_t x = canonical_bits(mma.a, a >> (i * bits));
    const uint64_t y = canonical_bits(mma.b, b >> (i * bits));
    if (mma.numerics == MmaNumerics::wraps)
      c += x * y;
    else
      sum += operand(mma.a, x, mma.numerics) * operand(mma.b, y, mma.numerics);
  }
  if (mma.numerics == MmaNumerics::wraps) return canonical_bits(mma.d, c);
  return tensor::float_to_bits(mma.d,
                               operand(mma.d, tensor::float_to_bits(mma.d, sum), mma.sums()));
}

void execute_mma(const MmaDescriptor& mma, uint64_t* d, const uint64_t* a, const uint64_t* b,
                 const uint64_t* c) {
  auto as = gather(mma.map_a, mma.lanes, mma.m, mma.k, mma.batch, a);
  auto bs = gather(mma.map_b, mma.lanes, mma.k, mma.n, mma.batch, b);
  for (int lane = 0; lane < mma.lanes; ++lane) {
    for (int reg = 0; reg < mma.map_d.registers(); ++reg) {
      MmaPlace at = mma.map_d.at(lane, reg);
      const uint64_t* row = &as[static_cast<size_t>((at.batch * mma.m + at.row) * mma.k)];
      const uint64_t* column = &bs[static_cast<size_t>(at.batch * mma.k * mma.n + at.column)];
      uint64_t& out = d[lane * mma.map_d.registers() + reg];
      uint64_t start = c[lane * mma.map_d.registers() + reg];
      if (mma.is_integer()) {
        const bool differs = mma.numerics == MmaNumerics::differs;
        for (int k = 0; k < mma.k; ++k) {
          const uint64_t x = canonical_bits(mma.a, row[k]),
                         y = canonical_bits(mma.b, column[k * mma.n]);
          start += differs ? static_cast<uint64_t>(x != y) : x * y;
        }
        out = canonical_bits(mma.d, start);
        continue;
      }
      // Products of two numbers of at most 11 bits are exact in double, and so is nearly every sum
      // of these few.
      double sum = operand(mma.d, start, mma.sums());
      for (int k = 0; k < mma.k; ++k) {
        sum +=
            operand(mma.a, row[k], mma.numerics) * operand(mma.b, column[k * mma.n], mma.numerics);
      }
      const uint64_t rounded = tensor::float_to_bits(mma.d, sum);
      out = tensor::float_to_bits(mma.d, operand(mma.d, rounded, mma.sums()));
    }
  }
}

}  // namespace heddle::kernel
