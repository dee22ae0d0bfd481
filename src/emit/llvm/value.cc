#include "emit/llvm/value.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace heddle::emit {
namespace {

__extension__ using Wide = __int128;

int64_t saturate(Wide x) { return static_cast<int64_t>(std::clamp<Wide>(x, INT64_MIN, INT64_MAX)); }

// A bound outside s64 means that the value may wrap: then nothing is known.
Bounds checked(Wide low, Wide high) {
  if (low < INT64_MIN || high > INT64_MAX) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

}  // namespace

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_remainder(int64_t a, int64_t b) { return a - floor_quotient(a, b) * b; }

Bounds Bounds::of(tensor::Type type) {
  if (type == tensor::Type::pred) return {0, 1};
  if (!tensor::is_integer(type)) return {};
  int width = tensor::type_bits(type);
  if (width >= 64) return {};
  if (tensor::is_unsigned_integer(type)) return {0, (int64_t{1} << width) - 1};
  return {-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1};
}

Bounds operator+(Bounds a, Bounds b) { return checked(Wide{a.low} + b.low, Wide{a.high} + b.high); }
Bounds operator-(Bounds a, Bounds b) { return checked(Wide{a.low} - b.high, Wide{a.high} - b.low); }

Bounds operator*(Bounds a, Bounds b) {
  Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                    Wide{a.high} * b.high};
  return checked(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Bounds unite(Bounds a, Bounds b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Bounds floor_div(Bounds a, Bounds b) {
  if (b.low < 1) return {};
  return {std::min(floor_quotient(a.low, b.low), floor_quotient(a.low, b.high)),
          std::max(floor_quotient(a.high, b.low), floor_quotient(a.high, b.high))};
}

Bounds floor_mod(Bounds a, Bounds b) {
  if (b.low < 1) return {};
  int64_t high = saturate(Wide{b.high} - 1);
  if (a.low >= 0) high = std::min(high, a.high);
  return {0, high};
}

std::optional<int64_t> residue(const Val& x, int64_t d) {
  if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(x.v))
    return floor_remainder(number->getSExtValue(), d);
  if (x.multiple % d == 0) return 0;
  return std::nullopt;
}

}  // namespace heddle::emit
