#include "api/host_sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace heddle::api {
namespace {

using hlo::Direction;
using hlo::Instr;
using hlo::Opcode;
using runtime::HostArgument;
using runtime::HostCallable;
using runtime::HostResult;
using tensor::Shape;
using tensor::Type;
using Arguments = std::span<const HostArgument>;
using Results = std::span<const HostResult>;

struct Sort {
  int64_t outer = 1, n = 0, step = 1;  // lines: outer x step, of n elements at stride `step`
  size_t key = 0;
  bool strict = false, descending = false;  // strict: equal keys compare false
  std::vector<int64_t> bytes;               // of an element, by operand
};

// The total order of floats; both zeros may count as equal, and all NaNs as equal and last.
struct TotalOrder {
  bool zeros_are_one = false, nans_are_one = false;
  bool operator==(const TotalOrder&) const = default;

  // An integer with that order, from a float's bits; `infinity`: the bits of infinity.
  template <typename Bits>
  auto key_of(Bits bits, Bits infinity) const {
    using Key = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
    constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
    const auto magnitude = static_cast<Bits>(bits & kMagnitude);
    if (zeros_are_one && magnitude == 0) return Key{0};
    if (nans_are_one && magnitude > infinity) return static_cast<Key>(kMagnitude);
    const auto key = static_cast<Key>(magnitude);
    return bits == magnitude ? key : static_cast<Key>(-1 - key);
  }
};

template <typename T>
struct Keyed {
  T key;
  int64_t place;
};

// Bottom-up merge sort: stable, and in bounds whatever NaN comparisons return; the interpreter's
// order.
template <typename T, typename Before>
void sort_line(std::vector<Keyed<T>>* line, std::vector<Keyed<T>>* merged, Before before) {
  const size_t n = line->size();
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      size_t a = begin, b = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_b = a == middle || (b < end && before((*line)[b].key, (*line)[a].key));
        (*merged)[out] = (*line)[take_b ? b++ : a++];
      }
    }
    line->swap(*merged);
  }
}

// Unsigned numbers with the order of the keys; NaN has none, and both zeros are equal.
template <typename T>
using Ranks = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
Ranks<T> rank_of(T key, bool descending) {
  using Rank = Ranks<T>;
  constexpr Rank kSign = Rank{1} << (8 * sizeof(Rank) - 1);
  Rank bits = 0;
  if constexpr (std::is_floating_point_v<T>) key = key == 0 ? T{0} : key;
  std::memcpy(&bits, &key, sizeof(T));
  if (std::is_floating_point_v<T> && (bits & kSign))
    bits = ~bits;
  else
    bits ^= kSign;
  return descending ? static_cast<Rank>(~bits) : bits;
}

// Radix sort by bytes, lowest first, stable: the same order as merging if no key is NaN.
template <typename T>
bool sort_by_bytes(std::vector<Keyed<T>>* line, std::vector<Keyed<T>>* moved, bool descending) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::any_of(line->begin(), line->end(), [](const auto& x) { return x.key != x.key; }))
      return false;
  for (size_t byte = 0; byte < sizeof(T); ++byte) {
    auto digit = [&](const Keyed<T>& x) {
      return static_cast<size_t>(rank_of(x.key, descending) >> (8 * byte)) & 255;
    };
    size_t begin[257] = {};
    for (const Keyed<T>& x : *line) ++begin[digit(x) + 1];
    if (std::find(begin, begin + 257, line->size()) != begin + 257) continue;  // all equal
    for (size_t i = 0; i < 256; ++i) begin[i + 1] += begin[i];
    for (const Keyed<T>& x : *line) (*moved)[begin[digit(x)]++] = x;
    line->swap(*moved);
  }
  return true;
}

// How many elements of a line may move. Equal ones at its end stay where they are if they come
// last in the order, too: a line of which less is there than it could hold ends so
// (opt/mask_padding).
template <typename KeyAt, typename Before>
int64_t moving(const Sort& sort, KeyAt key_at, Before before) {
  if (!sort.strict) return sort.n;
  const auto last = key_at(sort.n - 1);
  int64_t end = sort.n;
  while (end > 0 && key_at(end - 1) == last) --end;
  if (end + 1 >= sort.n) return sort.n;
  for (int64_t i = 0; i < end; ++i)
    if (before(last, key_at(i))) return sort.n;
  return end;
}

// `key_of` converts an element of type T to its key.
template <typename T, typename KeyOf, typename Before>
void run_sort(const Sort& sort, Arguments arguments, Results results, KeyOf key_of, Before before) {
  using Key = decltype(key_of(T{}));
  std::vector<Keyed<Key>> line, merged;
  const auto* keys = static_cast<const T*>(arguments[sort.key].data);
  for (int64_t o = 0; o < sort.outer; ++o) {
    for (int64_t s = 0; s < sort.step; ++s) {
      const int64_t base = o * sort.n * sort.step + s;
      const auto key_at = [&](int64_t i) { return key_of(keys[base + i * sort.step]); };
      const int64_t n = moving(sort, key_at, before);
      line.resize(static_cast<size_t>(n));
      merged.resize(line.size());
      for (int64_t i = 0; i < n; ++i)
        line[static_cast<size_t>(i)] = {key_at(i), base + i * sort.step};
      constexpr int64_t kFewForBytes = 256;
      const bool by_bytes =
          sort.strict && n >= kFewForBytes && sort_by_bytes(&line, &merged, sort.descending);
      if (!by_bytes) sort_line(&line, &merged, before);
      for (size_t k = 0; k < results.size(); ++k) {
        const auto size = static_cast<size_t>(sort.bytes[k]);
        const auto* from = static_cast<const char*>(arguments[k].data);
        auto* to = static_cast<char*>(results[k].data);
        const auto move = [&](int64_t i, int64_t place, size_t bytes) {
          std::memcpy(to + (base + i * sort.step) * sort.bytes[k], from + place * sort.bytes[k],
                      bytes);
        };
        for (int64_t i = 0; i < n; ++i) move(i, line[static_cast<size_t>(i)].place, size);
        if (sort.step == 1) {
          move(n, base + n, size * static_cast<size_t>(sort.n - n));
          continue;
        }
        for (int64_t i = n; i < sort.n; ++i) move(i, base + i * sort.step, size);
      }
    }
  }
}

bool is_scalar(const Instr* x, bool nan) {
  if (!x->is(Opcode::constant) || !x->shape().is_scalar()) return false;
  const double value = x->literal().get_f64(0);
  return !std::signbit(value) && (nan ? std::isnan(value) : value == 0);
}

// The parameter behind a side of a comparator's root, after canonicalisation of zeros and NaNs.
// Null: another form.
const Instr* canonical(const Instr* side, TotalOrder* order) {
  std::vector<const Instr*> asked;
  for (; side->is(Opcode::select); side = side->operand(2)) {
    const Instr *test = side->operand(0), *value = side->operand(1);
    if (!test->is(Opcode::compare)) return nullptr;
    const auto& compare = test->attrs_as<hlo::CompareAttrs>();
    if (compare.type == hlo::CompareType::total_order) return nullptr;
    asked.push_back(test->operand(0));
    if (compare.direction == Direction::ne && test->operand(1) == test->operand(0) &&
        is_scalar(value, /*nan=*/true))
      order->nans_are_one = true;
    else if (compare.direction == Direction::eq && is_scalar(test->operand(1), /*nan=*/false) &&
             is_scalar(value, /*nan=*/false))
      order->zeros_are_one = true;
    else
      return nullptr;
  }
  const bool is_one =
      std::all_of(asked.begin(), asked.end(), [&](const Instr* of) { return of == side; });
  return is_one && side->is(Opcode::parameter) ? side : nullptr;
}

// Calls `make` with the comparison of two keys.
template <typename Make>
void with_direction(Direction direction, Make&& make) {
  if (direction == Direction::lt) make([](auto a, auto b) { return a < b; });
  if (direction == Direction::gt) make([](auto a, auto b) { return a > b; });
  if (direction == Direction::le) make([](auto a, auto b) { return a <= b; });
  if (direction == Direction::ge) make([](auto a, auto b) { return a >= b; });
}

template <typename T, typename KeyOf>
std::optional<HostCallable> sort_call(const Sort& sort, Direction direction, KeyOf key_of) {
  std::optional<HostCallable> call;
  with_direction(direction, [&](auto before) {
    call = [sort, key_of, before](Arguments arguments, Results results) -> Status {
      run_sort<T>(sort, arguments, results, key_of, before);
      return {};
    };
  });
  return call;
}

template <typename Bits>
std::optional<HostCallable> total_call(const Sort& sort, Direction direction, TotalOrder order,
                                       Bits infinity) {
  return sort_call<Bits>(sort, direction,
                         [order, infinity](Bits bits) { return order.key_of(bits, infinity); });
}

std::optional<HostCallable> total_sort(Type type, const Sort& sort, Direction direction,
                                       TotalOrder order) {
  switch (type) {
    case Type::f16:
      return total_call(sort, direction, order, uint16_t{0x7c00});
    case Type::bf16:
      return total_call(sort, direction, order, uint16_t{0x7f80});
    case Type::f32:
      return total_call(sort, direction, order, uint32_t{0x7f800000});
    case Type::f64:
      return total_call(sort, direction, order, uint64_t{0x7ff0000000000000});
    default:
      return {};
  }
}

}  // namespace

std::optional<HostCallable> native_sort(const Instr& instr) {
  const Instr& test = *instr.called()[0]->root();
  if (!test.is(Opcode::compare)) return {};
  const auto& compare = test.attrs_as<hlo::CompareAttrs>();
  TotalOrder order, other;
  const Instr* x = canonical(test.operand(0), &order);
  const Instr* y = canonical(test.operand(1), &other);
  if (!x || !y || order != other) return {};
  const int64_t first = x->parameter_number();
  if (first % 2 != 0 || y->parameter_number() != first + 1) return {};
  Sort sort;
  sort.key = static_cast<size_t>(first / 2);
  const Shape& shape = instr.operand(sort.key)->shape();
  const bool is_total = compare.type == hlo::CompareType::total_order;
  if (!is_total && order != TotalOrder{}) return {};
  const auto along = instr.attrs_as<hlo::SortAttrs>().dimension;
  for (int64_t d = 0; d < shape.rank(); ++d) (d < along ? sort.outer : sort.step) *= shape.dim(d);
  sort.n = shape.dim(along);
  if (sort.n == 0 || shape.elems() == 0) return {};
  sort.step /= sort.n;
  for (const Instr* operand : instr.operands())
    sort.bytes.push_back(tensor::type_bytes(operand->shape().type()));
  const Direction direction = compare.direction;
  sort.strict = direction == Direction::lt || direction == Direction::gt;
  sort.descending = direction == Direction::gt;
  if (is_total && tensor::is_float(shape.type()))
    return total_sort(shape.type(), sort, direction, order);
  std::optional<HostCallable> call;
  with_type(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    call = sort_call<T>(sort, direction, [](T key) { return key; });
  });
  return call;
}

}  // namespace heddle::api
